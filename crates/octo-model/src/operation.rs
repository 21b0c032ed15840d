//! An operation, the same for every frontend and every source.

use crate::JsonObject;

/// The hub's id of a call, unique across machines and ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallId(pub uuid::Uuid);

impl CallId {
    pub fn fresh() -> Self {
        Self(uuid::Uuid::now_v7())
    }
}

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_simple().fmt(f)
    }
}

/// The frontend that a call came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Frontend {
    Cli,
    Stdio,
    Http,
    Rest,
    Admin,
}

impl Frontend {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Rest => "rest",
            Self::Admin => "admin",
        }
    }
}

/// The method of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    CallTool,
    GetPrompt,
    ReadResource,
    Complete,
    Subscribe,
    Unsubscribe,
}

impl Method {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CallTool => "tools/call",
            Self::GetPrompt => "prompts/get",
            Self::ReadResource => "resources/read",
            Self::Complete => "completion/complete",
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
        }
    }

    /// Returns whether it refers to a resource by its URI.
    pub const fn names_resource(self) -> bool {
        matches!(self, Self::ReadResource | Self::Subscribe | Self::Unsubscribe)
    }
}

/// An operation on an item, with the parameters as the client sent them. `params` has every member of the
/// request's `params`, known or not.
#[derive(Debug, Clone)]
pub struct Operation {
    pub method: Method,
    /// The listed name of the tool or prompt, or the URI of the resource.
    pub name: String,
    pub params: JsonObject,
}

impl Operation {
    /// A plain tool call.
    pub fn tool(name: impl Into<String>, arguments: crate::Json) -> Self {
        Self {
            method: Method::CallTool,
            name: name.into(),
            params: JsonObject::new().with("arguments", arguments),
        }
    }
}
