//! An operation, the same for every frontend and every source.

use crate::JsonObject;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

impl Serialize for CallId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        uuid::Uuid::try_parse(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// The frontend that a call came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Method {
    #[serde(rename = "tools/call")]
    CallTool,
    #[serde(rename = "prompts/get")]
    GetPrompt,
    #[serde(rename = "resources/read")]
    ReadResource,
    #[serde(rename = "completion/complete")]
    Complete,
    #[serde(rename = "resources/subscribe")]
    Subscribe,
    #[serde(rename = "resources/unsubscribe")]
    Unsubscribe,
    #[serde(rename = "skills/get")]
    GetSkill,
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
            Self::GetSkill => "skills/get",
        }
    }

    /// Returns whether it refers to a resource by its URI.
    pub const fn names_resource(self) -> bool {
        matches!(self, Self::ReadResource | Self::Subscribe | Self::Unsubscribe | Self::GetSkill)
    }
}

/// A request of a server to the client of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerRequest {
    Elicitation,
    Sampling,
    Roots,
}

impl ServerRequest {
    pub const ALL: [Self; 3] = [Self::Elicitation, Self::Sampling, Self::Roots];

    /// The name of the method in the protocol.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// The name in settings and policy rules.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }

    pub fn parse(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|request| request.as_str() == method)
    }

    /// The name that policy rules and audit records have for a question of this server.
    pub fn name_at(self, server: &str) -> String {
        format!("{server}/{}", self.kind())
    }
}

/// What an audit record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedMethod {
    Call(Method),
    Question(ServerRequest),
}

impl RecordedMethod {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call(method) => method.as_str(),
            Self::Question(request) => request.as_str(),
        }
    }
}

impl From<Method> for RecordedMethod {
    fn from(method: Method) -> Self {
        Self::Call(method)
    }
}

/// An operation on an item, with the parameters as the client sent them. `params` has every member of the
/// request's `params`, known or not.
#[derive(Debug, Clone, Serialize, Deserialize)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire_test::assert_wire_form;

    #[test]
    fn frontends_have_their_names_on_the_wire() {
        let all = [Frontend::Cli, Frontend::Stdio, Frontend::Http, Frontend::Rest, Frontend::Admin];
        for frontend in all {
            assert_wire_form(&frontend, &format!("{:?}", frontend.as_str()));
        }
    }

    #[test]
    fn methods_have_their_names_on_the_wire() {
        let all = [
            Method::CallTool,
            Method::GetPrompt,
            Method::ReadResource,
            Method::Complete,
            Method::Subscribe,
            Method::Unsubscribe,
        ];
        for method in all {
            assert_wire_form(&method, &format!("{:?}", method.as_str()));
        }
    }

    #[test]
    fn call_ids_are_texts_on_the_wire() {
        for id in [CallId(uuid::Uuid::nil()), CallId::fresh()] {
            assert_wire_form(&id, &format!("\"{id}\""));
        }
        assert!(serde_json::from_str::<CallId>("\"0\"").is_err());
    }

    #[test]
    fn operations_keep_every_param_on_the_wire() {
        let rows = [
            r#"{"method":"tools/call","name":"echo","params":{"arguments":{"n":1.50},"_meta":{"vendor":null}}}"#,
            r#"{"method":"resources/read","name":"file:///a","params":{}}"#,
        ];
        for text in rows {
            assert_wire_form(&serde_json::from_str::<Operation>(text).unwrap(), text);
        }
    }
}
