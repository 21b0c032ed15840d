//! What this front does for the others: it takes messages of clients, and answers requests, that belong to its calls.

use crate::fleet::{FRONT_SOURCE, front_address};
use octo_fabric::{BusError, FrontMessageServer, FrontMessages, Node, SourceServer, serve_source};
use octo_mcp::{Mcp, RelayedRequest};
use octo_model::{BoxFuture, Json, JsonObject, Operation, ToolError};
use octo_toolkit::{CallContext, ListingState, Source, SourceState};
use octo_wire::Message;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Ends when dropped.
pub struct FrontServer {
    /// Answers of clients whose calls are in progress, also while it drains.
    messages: FrontMessageServer,
    requests: SourceServer,
}

impl FrontServer {
    pub async fn start(node: &Arc<Node>, messages: &FrontMessages, mcp: &Arc<Mcp>) -> Result<Self, BusError> {
        let known = Arc::downgrade(mcp);
        let handler = move |message: Json| -> BoxFuture<'static, bool> {
            let mcp = known.clone();
            Box::pin(async move {
                let (Some(mcp), Ok(message)) = (mcp.upgrade(), message.to()) else { return false };
                mcp.receive_front_message(message).await
            })
        };
        let state = ListingState { state: SourceState::Ready, listing: Arc::default(), version: 1 };
        let source = FrontSource { mcp: Arc::downgrade(mcp), listing: watch::Sender::new(state) };
        let address = front_address(node.name()).map_err(|error| BusError::Refused(error.to_string()))?;
        Ok(Self {
            messages: messages.serve(Box::new(handler)).await?,
            requests: serve_source(node, address, Arc::new(source), None).await?,
        })
    }
}

impl FrontServer {
    /// Takes no more requests of other fronts, and waits for those in progress. Messages are taken until the returned
    /// server is dropped.
    pub async fn drain(self, at_most: Duration) -> FrontMessageServer {
        self.requests.drain(at_most).await;
        self.messages
    }
}

/// Requests that other fronts relay, as calls of a source.
struct FrontSource {
    mcp: Weak<Mcp>,
    listing: watch::Sender<ListingState>,
}

impl FrontSource {
    async fn answer(&self, op: Operation, cx: &CallContext) -> Result<JsonObject, ToolError> {
        let mcp = self.mcp.upgrade().ok_or_else(|| ToolError::unavailable("The hub stops."))?;
        let request: RelayedRequest = op.params.to_json().to().map_err(ToolError::internal)?;
        let (out, mut messages) = mpsc::channel(64);
        let mut answer = std::pin::pin!(mcp.answer_relayed(request, out, cx.cancel.clone()));
        let answer = loop {
            tokio::select! {
                biased;
                Some(message) = messages.recv() => pass_on(message, cx),
                answer = &mut answer => break answer,
            }
        };
        while let Ok(message) = messages.try_recv() {
            pass_on(message, cx);
        }
        Ok(match answer {
            Ok(result) => JsonObject::new().with("result", result),
            Err(error) => JsonObject::new().with("error", Json::of(&error)),
        })
    }
}

fn pass_on(message: Message, cx: &CallContext) {
    if let Message::Notification { method, params } = message {
        cx.peer.notify(&method, params);
    }
}

impl Source for FrontSource {
    fn name(&self) -> &str {
        FRONT_SOURCE
    }

    fn is_native(&self) -> bool {
        true
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.listing.subscribe()
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(self.answer(op, cx))
    }
}
