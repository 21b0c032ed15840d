//! The hub's own source: stored results, as a tool and as resources.

use crate::results::jq_eval::JqRunner;
use crate::results::result_limit::HANDLE_SCHEME;
use crate::results::result_read::{ResultRead, ResultReader};
use octo_grants::Capabilities;
use octo_model::{Effect, EffectOrigin, Json, JsonObject, Kind, Method, Operation, ToolError};
use octo_ports::ResultStore;
use octo_toolkit::{BoxFuture, CallContext, Definition, Listing, ListingState, Source, SourceState, Toolbox};
use std::sync::Arc;
use tokio::sync::watch;

/// Results larger than `most` bytes are not returned as resources.
pub fn source(result_store: Arc<dyn ResultStore>, jq: JqRunner, most: usize) -> Arc<dyn Source> {
    let toolbox = Toolbox::new("results", "Stored results that were truncated.").with(ResultRead);
    let doors = Capabilities::default().with(ResultReader::new(Arc::clone(&result_store), jq));
    let tools = toolbox.into_source(doors, SourceState::Ready);
    let template = JsonObject::new()
        .with("uriTemplate", format!("{HANDLE_SCHEME}{{handle}}").as_str())
        .with("name", "kept_result")
        .with("title", "A stored result")
        .with("description", "The whole of a truncated reply, by the handle in the reply.")
        .with("mimeType", "application/json");
    let template = Definition {
        key: format!("{HANDLE_SCHEME}{{handle}}"),
        members: template,
        effect: Effect::reads(),
        effect_origin: EffectOrigin::Native,
    };
    let lists = Listing { templates: vec![template], ..(*tools.listing().borrow().listing).clone() };
    let (listing, _) =
        watch::channel(ListingState { state: SourceState::Ready, listing: Arc::new(lists), version: 1 });
    Arc::new(ResultsSource { tools, result_store, listing, max_resource_bytes: most })
}

struct ResultsSource {
    tools: Arc<dyn Source>,
    result_store: Arc<dyn ResultStore>,
    listing: watch::Sender<ListingState>,
    max_resource_bytes: usize,
}

impl Source for ResultsSource {
    fn name(&self) -> &str {
        self.tools.name()
    }

    fn is_native(&self) -> bool {
        true
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.listing.subscribe()
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        if op.method != Method::ReadResource {
            return self.tools.run(op, cx);
        }
        Box::pin(async move {
            let uri = op.params.text("uri").unwrap_or_default();
            let handle = uri.strip_prefix(HANDLE_SCHEME).unwrap_or_default();
            let size = self.result_store.open_text(&cx.caller, handle).await?.size.bytes;
            if size > self.max_resource_bytes as u64 {
                // Storing it a second time would not help.
                return Err(ToolError::new(Kind::TooLarge, format!("This result has {size} bytes."))
                    .hint(format!("Read it in parts with result_read and handle \"{handle}\".")));
            }
            let whole = self.result_store.load(&cx.caller, handle).await?;
            let content = JsonObject::new()
                .with("uri", uri.as_str())
                .with("mimeType", "application/json")
                .with("text", whole.as_str());
            Ok(JsonObject::new().with("contents", Json::array([&content.to_json()])))
        })
    }
}
