//! Configured servers that are not connected. Their items are not listed, but calls to them are answered with
//! the reason.

use arc_swap::ArcSwap;
use octo_model::{JsonObject, Operation, ToolError};
use octo_toolkit::{BoxFuture, CallContext, Listing, ListingState, Source, SourceState};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Each server with what the operator can do about it.
#[derive(Default)]
pub struct AbsentServers(ArcSwap<Vec<(Arc<dyn Source>, String)>>);

impl AbsentServers {
    pub fn set(&self, servers: BTreeMap<String, String>) {
        let source = |name: String| Arc::new(AbsentSource(name)) as Arc<dyn Source>;
        self.0.store(Arc::new(servers.into_iter().map(|(name, why)| (source(name), why)).collect()));
    }

    pub fn get(&self) -> Arc<Vec<(Arc<dyn Source>, String)>> {
        self.0.load_full()
    }
}

/// Stand-in source, by which the policy decides whether a caller may know of the server.
struct AbsentSource(String);

impl Source for AbsentSource {
    fn name(&self) -> &str {
        &self.0
    }

    fn is_native(&self) -> bool {
        false
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        let lists = Arc::new(Listing::default());
        watch::channel(ListingState { state: SourceState::Off(String::new()), listing: lists, version: 0 }).1
    }

    fn run<'a>(&'a self, _: Operation, _: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async { Err(ToolError::unavailable(format!("The server `{}` is not connected.", self.0))) })
    }
}
