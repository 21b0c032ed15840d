//! Fake upstream with a tool for each case.

use octo_model::{Effect, EffectOrigin, Json, JsonObject, Kind, Method, Operation, ToolError};
use octo_toolkit::{BoxFuture, CallContext, Definition, Listing, ListingState, Source, SourceState};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::watch;

/// Fake upstream. Its listing can be changed while the hub runs.
pub struct FakeUpstream {
    listing: watch::Sender<ListingState>,
    /// Incremented when a call of `slow` starts, decremented when it is dropped.
    pub waiting: Arc<watch::Sender<i32>>,
}

fn definition(name: &str, members: Value) -> Definition {
    let members = Json::from(members).members().unwrap().with("name", name);
    Definition {
        key: name.to_owned(),
        members,
        effect: Effect::unknown(),
        effect_origin: EffectOrigin::Assumed,
    }
}

impl FakeUpstream {
    pub fn new() -> Arc<Self> {
        let plain = json!({"description": "A tool.", "inputSchema": {"type": "object"}});
        let deep = json!({"inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"type": "string"}}}});
        let lost = json!({"inputSchema": {"type": "object", "properties": {"a": {"$ref": "https://example.com/a"}}}});
        let typed = json!({"inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "properties": {"n": {"type": "number"}}}});
        let names = ["fail", "picture", "panic", "slow", "ask", "error"];
        let mut tools: Vec<Definition> = names.map(|name| definition(name, plain.clone())).to_vec();
        tools.extend([definition("deep", deep), definition("lost", lost), definition("both", typed)]);
        let arguments =
            json!([{"name": "who", "description": "Whom to greet.", "required": true}, {"name": "how"}]);
        let prompts = vec![definition("greet", json!({"title": "Greet", "arguments": arguments}))];
        let lists = Arc::new(Listing { tools, prompts, ..Listing::default() });
        let (listing, _) =
            watch::channel(ListingState { state: SourceState::Ready, listing: lists, version: 1 });
        Arc::new(Self { listing, waiting: Arc::new(watch::channel(0).0) })
    }

    pub fn go_down(&self, why: &str) {
        self.listing.send_modify(|listing| listing.state = SourceState::Down(why.to_owned()));
    }
}

struct WaitingGuard(Arc<watch::Sender<i32>>);

impl Drop for WaitingGuard {
    fn drop(&mut self) {
        self.0.send_modify(|many| *many -= 1);
    }
}

fn members(value: Value) -> Result<JsonObject, ToolError> {
    Ok(Json::from(value).members().unwrap())
}

impl Source for FakeUpstream {
    fn name(&self) -> &str {
        "up"
    }

    fn is_native(&self) -> bool {
        false
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.listing.subscribe()
    }

    fn run<'a>(&'a self, op: Operation, _: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            let picture = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
            let arguments = op.params.object("arguments");
            match (op.method, op.name.as_str()) {
                (Method::GetPrompt, _) => {
                    let text = format!("Hello {}", arguments.text("who").unwrap_or_default());
                    members(
                        json!({"_meta": {}, "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}),
                    )
                }
                (_, "fail") => members(
                    json!({"isError": true, "content": [{"type": "text", "text": "No such page."}, picture]}),
                ),
                (_, "picture") => members(json!({"content": [picture]})),
                (_, "both") => Ok(JsonObject::new()
                    .with("structuredContent", Json::parse(r#"{"n":1.50}"#).unwrap())
                    .with("content", Json::from(json!([{"type": "text", "text": "1.5"}, picture])))),
                (_, "ask") => members(json!({"resultType": "input_required", "inputRequests": {}})),
                (_, "panic") => panic!("on purpose"),
                (_, "error") => Err(failing(&arguments.text("kind").unwrap_or_default())),
                (_, "slow") => {
                    self.waiting.send_modify(|many| *many += 1);
                    let _waiting = WaitingGuard(Arc::clone(&self.waiting));
                    std::future::pending().await
                }
                _ => members(json!({"content": []})),
            }
        })
    }
}

fn failing(kind: &str) -> ToolError {
    let kind = Kind::ALL.into_iter().find(|one| one.as_str() == kind).unwrap();
    ToolError::new(kind, "It went wrong.").hint("Do it right.").detail("secret detail")
}
