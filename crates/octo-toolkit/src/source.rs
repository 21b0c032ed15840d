//! The one trait behind the catalogue: native toolboxes, upstreams, later workers and declared tools.

use crate::{BoxFuture, CallContext, JsonObject, Peer};
use octo_model::{Caller, Effect, Operation, Principal, ToolError};
use std::sync::Arc;
use tokio::sync::{broadcast, watch};

/// How a source is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    /// The first listing is still under way.
    Starting,
    Ready,
    /// What is listed, if anything, is from before; the text says what is wrong.
    Down(String),
    /// Listed only on request (`octoprox tools --all`); the text says what the operator can do.
    Off(String),
}

/// One tool, prompt, resource or template as its source defines it.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Name, URI or URI template.
    pub key: String,
    /// The whole definition, unknown members included.
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
    /// How long the lists may be kept, when the source says so.
    pub ttl_ms: Option<u64>,
    /// Whether it answers `completion/complete` and `resources/subscribe`.
    pub supports_completion: bool,
    pub supports_subscribe: bool,
}

#[derive(Debug, Clone)]
pub struct ListingState {
    pub state: SourceState,
    pub listing: Arc<Listing>,
    /// Rises with every change of the above.
    pub version: u64,
}

/// What a source tells without being asked.
#[derive(Debug, Clone)]
pub enum Event {
    ResourceUpdated {
        uri: String,
    },
    /// Something that people should know.
    Warning {
        audience: Audience,
        text: String,
    },
}

/// Who is told.
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

/// Something that lists items and runs operations on them.
pub trait Source: Send + Sync {
    /// The name in settings; the prefix of listed names for upstreams.
    fn name(&self) -> &str;

    /// Native tools are listed under their own names.
    fn is_native(&self) -> bool;

    /// The present listing and its changes.
    fn listing(&self) -> watch::Receiver<ListingState>;

    /// Runs `op`, whose `name` is the source's own name of the item. The answer is the whole result object.
    fn run<'a>(
        &'a self,
        op: Operation,
        cx: &'a CallContext,
        peer: &'a Arc<dyn Peer>,
    ) -> BoxFuture<'a, Result<JsonObject, ToolError>>;

    fn events(&self) -> Option<broadcast::Receiver<Event>> {
        None
    }

    /// Starts (`true`) or ends watching a resource.
    fn watch<'a>(&'a self, _uri: &'a str, _on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async {
            Err(ToolError::invalid("This resource cannot be watched.").hint("Read it again instead."))
        })
    }
}
