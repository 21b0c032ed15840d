//! The trait behind the catalogue: toolboxes, declared tools, upstreams.

use crate::{BoxFuture, CallContext, JsonObject, Peer};
use octo_model::{Caller, Effect, Operation, Principal, ToolError};
use std::sync::Arc;
use tokio::sync::{broadcast, watch};

/// State of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    /// The first listing is in progress.
    Starting,
    Ready,
    /// The listing, if any, is outdated; the text is the reason.
    Down(String),
    /// Listed only on request (`octoprox tools --all`); the text tells what the operator can do.
    Off(String),
}

/// A tool, prompt, resource or template as its source defines it.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Name, URI or URI template.
    pub key: String,
    /// The whole definition, including unknown members.
    pub members: JsonObject,
    pub effect: Effect,
    /// Whether the effect is a fact (native) or only assumed.
    pub trusted_effect: bool,
}

/// What a source offers at one moment.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    pub tools: Vec<Definition>,
    pub prompts: Vec<Definition>,
    pub resources: Vec<Definition>,
    pub templates: Vec<Definition>,
    pub instructions: Option<String>,
    /// How long the lists may be cached, if the source specifies it.
    pub ttl_ms: Option<u64>,
    /// Whether it supports `completion/complete` and `resources/subscribe`.
    pub supports_completion: bool,
    pub supports_subscribe: bool,
}

#[derive(Debug, Clone)]
pub struct ListingState {
    pub state: SourceState,
    pub listing: Arc<Listing>,
    /// Increases with every change of the above.
    pub version: u64,
}

/// An event of a source.
#[derive(Debug, Clone)]
pub enum Event {
    ResourceUpdated {
        uri: String,
    },
    /// A warning for people.
    Warning {
        audience: Audience,
        text: String,
    },
}

/// Recipients of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    Everybody,
    Principal(Principal),
}

impl Audience {
    pub fn includes(&self, caller: &Caller) -> bool {
        match self {
            Self::Everybody => true,
            Self::Principal(principal) => *principal == caller.principal,
        }
    }
}

/// Lists items and runs operations on them.
pub trait Source: Send + Sync {
    /// The name in the settings; for upstreams the prefix of listed names.
    fn name(&self) -> &str;

    /// Native tools are listed under their own names.
    fn is_native(&self) -> bool;

    /// The current listing and its changes.
    fn listing(&self) -> watch::Receiver<ListingState>;

    /// Runs `op`, whose `name` is the source's own name of the item. Returns the whole result object.
    fn run<'a>(
        &'a self,
        op: Operation,
        cx: &'a CallContext,
        peer: &'a Arc<dyn Peer>,
    ) -> BoxFuture<'a, Result<JsonObject, ToolError>>;

    fn events(&self) -> Option<broadcast::Receiver<Event>> {
        None
    }

    /// Starts (`true`) or stops watching a resource.
    fn watch<'a>(&'a self, _uri: &'a str, _on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async {
            Err(ToolError::invalid("This resource does not support subscriptions.")
                .hint("Read it again instead."))
        })
    }
}
