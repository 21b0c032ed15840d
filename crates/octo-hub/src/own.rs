//! The hub's own source: kept results, as a tool and as resources.

use crate::jq::JqRunner;
use crate::ports::Spills;
use crate::result_read::{Kept, ResultRead};
use crate::shape::HANDLE_SCHEME;
use octo_grants::Doors;
use octo_model::{Effect, Json, Kind, Members, Method, Op, ToolError};
use octo_toolkit::{BoxFuture, Cx, Definition, Listing, Lists, Peer, Source, State, Toolbox};
use std::sync::Arc;
use tokio::sync::watch;

/// Results larger than `most` bytes are not given as resources.
pub fn source(spills: Arc<dyn Spills>, jq: JqRunner, most: usize) -> Arc<dyn Source> {
    let toolbox = Toolbox::new("results", "Large results that were cut, kept for reading.").with(ResultRead);
    let doors = Doors::default().with(Kept::new(Arc::clone(&spills), jq));
    let tools = toolbox.into_source(doors, State::Ready);
    let template = Members::new()
        .with("uriTemplate", format!("{HANDLE_SCHEME}{{handle}}").as_str())
        .with("name", "kept_result")
        .with("title", "A kept result")
        .with("description", "The whole of a reply that was cut; its handle stands in the reply.")
        .with("mimeType", "application/json");
    let template = Definition {
        key: format!("{HANDLE_SCHEME}{{handle}}"),
        members: template,
        effect: Effect::reads(),
        vouched: true,
    };
    let lists = Lists { templates: vec![template], ..(*tools.listing().borrow().lists).clone() };
    let (listing, _) = watch::channel(Listing { state: State::Ready, lists: Arc::new(lists), version: 1 });
    Arc::new(Own { tools, spills, listing, most })
}

struct Own {
    tools: Arc<dyn Source>,
    spills: Arc<dyn Spills>,
    listing: watch::Sender<Listing>,
    most: usize,
}

impl Source for Own {
    fn name(&self) -> &str {
        self.tools.name()
    }

    fn is_native(&self) -> bool {
        true
    }

    fn listing(&self) -> watch::Receiver<Listing> {
        self.listing.subscribe()
    }

    fn run<'a>(
        &'a self,
        op: Op,
        cx: &'a Cx,
        peer: &'a Arc<dyn Peer>,
    ) -> BoxFuture<'a, Result<Members, ToolError>> {
        if op.method != Method::ReadResource {
            return self.tools.run(op, cx, peer);
        }
        Box::pin(async move {
            let uri = op.params.text("uri").unwrap_or_default();
            let handle = uri.strip_prefix(HANDLE_SCHEME).unwrap_or_default();
            let size = self.spills.open_text(&cx.caller, handle).await?.size.bytes;
            if size > self.most as u64 {
                // Keeping it a second time would help nobody.
                return Err(ToolError::new(Kind::TooLarge, format!("This result has {size} bytes."))
                    .hint(format!("Read it in parts with result_read and handle \"{handle}\".")));
            }
            let whole = self.spills.load(&cx.caller, handle).await?;
            let content = Members::new()
                .with("uri", uri.as_str())
                .with("mimeType", "application/json")
                .with("text", whole.as_str());
            Ok(Members::new().with("contents", Json::array([&content.to_json()])))
        })
    }
}
