//! A source with one tool per behaviour.

use octo_model::{BoxFuture, Effect, EffectOrigin, Json, JsonObject, Kind, Operation, RpcError, ToolError};
use octo_ports::{ResultWriter, Stores};
use octo_toolkit::{AskError, CallContext, Definition, Event, Listing, ListingState, Source, SourceState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{broadcast, watch};

pub struct TestSource {
    pub listing: watch::Sender<ListingState>,
    pub events: broadcast::Sender<Event>,
    pub watched: Mutex<Vec<(String, bool)>>,
    pub started: AtomicU64,
    pub ended: AtomicU64,
    /// Calls whose future was dropped.
    pub dropped: AtomicU64,
    results: ResultWriter,
}

pub fn definition(name: &str) -> Definition {
    Definition {
        key: name.to_owned(),
        members: JsonObject::new().with("name", name),
        effect: Effect::reads(),
        effect_origin: EffectOrigin::Native,
    }
}

pub fn listing_state(tools: &[&str], version: u64) -> ListingState {
    let tools = tools.iter().map(|name| definition(name)).collect();
    let listing = Listing { tools, instructions: Some("Be kind.".to_owned()), ..Listing::default() };
    ListingState { state: SourceState::Ready, listing: Arc::new(listing), version }
}

impl Default for TestSource {
    fn default() -> Self {
        Self::with_results(ResultWriter::new(Stores::in_memory().results))
    }
}

impl TestSource {
    pub fn with_results(results: ResultWriter) -> Self {
        Self {
            results,
            listing: watch::Sender::new(listing_state(&["echo"], 1)),
            events: broadcast::Sender::new(16),
            watched: Mutex::default(),
            started: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }
}

/// Counts how a call ended.
struct CallCount<'a> {
    source: &'a TestSource,
    has_ended: bool,
}

impl Drop for CallCount<'_> {
    fn drop(&mut self) {
        let counter = if self.has_ended { &self.source.ended } else { &self.source.dropped };
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

pub fn full_error() -> ToolError {
    ToolError::rate_limited("Slow down.", Duration::from_millis(1_500))
        .hint("Wait.")
        .detail("only for the log")
        .rpc(RpcError { code: 7, message: "no".to_owned(), data: Some(Json::null()) })
}

async fn outcome(op: Operation, cx: &CallContext, results: &ResultWriter) -> Result<JsonObject, ToolError> {
    let number = |key: &str| op.params.get(key).and_then(|value| value.to::<u64>().ok()).unwrap_or(0);
    match op.name.as_str() {
        "echo" => Ok(op.params.with("name", op.name.as_str())),
        "header" => Ok(JsonObject::new()
            .with("header", Json::of(cx.header()))
            .with("capabilities", cx.peer.capabilities().to_json())
            .with("client", Json::of(&cx.peer.key()))),
        "big" => {
            let text = "x".repeat(usize::try_from(number("bytes")).unwrap());
            Ok(JsonObject::new().with("text", text.as_str()))
        }
        "sleep" => std::future::pending().await,
        "wait" => {
            tokio::time::sleep(Duration::from_millis(number("ms"))).await;
            Ok(JsonObject::new())
        }
        "until_cancelled" => {
            cx.cancel.cancelled().await;
            Err(ToolError::cancelled())
        }
        "progress" => {
            for step in 1..=number("count") {
                cx.progress(step, Some(100), "step");
            }
            cx.peer.task_started();
            Ok(JsonObject::new())
        }
        "ask" => match cx.peer.ask("elicitation/create", op.params).await {
            Ok(answer) => Ok(answer),
            Err(AskError::Refused(error)) => Err(ToolError::denied("Refused.").rpc(error)),
            Err(AskError::Unable) => Err(ToolError::denied("Unable.")),
            Err(AskError::Gone) => Err(ToolError::denied("Gone.")),
        },
        "store" => {
            let text = "x".repeat(usize::try_from(number("bytes")).unwrap());
            let handle = results.write(&cx.caller, cx.id, &text).await.map_err(ToolError::internal)?;
            Ok(JsonObject::new().with("handle", handle.as_str()))
        }
        "fail" => Err(full_error()),
        "panic" => panic!("a tool panics"),
        _ => Err(ToolError::new(Kind::NotFound, "No such tool.")),
    }
}

impl Source for TestSource {
    fn name(&self) -> &str {
        "test"
    }

    fn is_native(&self) -> bool {
        true
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.listing.subscribe()
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        self.started.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let mut call = CallCount { source: self, has_ended: false };
            let outcome = outcome(op, cx, &self.results).await;
            call.has_ended = true;
            outcome
        })
    }

    fn events(&self) -> Option<broadcast::Receiver<Event>> {
        Some(self.events.subscribe())
    }

    fn watch<'a>(&'a self, uri: &'a str, on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        self.watched.lock().unwrap().push((uri.to_owned(), on));
        Box::pin(std::future::ready(match uri {
            "test://refused" if on => Err(ToolError::denied("Not this one.")),
            _ => Ok(()),
        }))
    }
}
