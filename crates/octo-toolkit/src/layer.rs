//! Layers around a source: they change how calls run or what is listed, and delegate the rest.

use crate::{BoxFuture, CallContext, Event, JsonObject, ListingState, Source};
use octo_model::{Operation, ToolError};
use std::sync::Arc;
use tokio::sync::{broadcast, watch};

/// A source that wraps another one. Every layer is a [`Source`], so that layers stack.
pub trait Layer: Send + Sync {
    /// The wrapped source.
    fn inner(&self) -> &Arc<dyn Source>;

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>>;

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.inner().listing()
    }

    fn watch<'a>(&'a self, uri: &'a str, on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        self.inner().watch(uri, on)
    }
}

impl<L: Layer> Source for L {
    fn name(&self) -> &str {
        self.inner().name()
    }

    fn is_native(&self) -> bool {
        self.inner().is_native()
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        Layer::listing(self)
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Layer::run(self, op, cx)
    }

    fn events(&self) -> Option<broadcast::Receiver<Event>> {
        self.inner().events()
    }

    fn watch<'a>(&'a self, uri: &'a str, on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        Layer::watch(self, uri, on)
    }
}
