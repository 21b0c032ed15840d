//! Results that are too large for a reply, stored whole for whoever caused them.

use crate::{StoreResult, StoredText};
use octo_model::{BoxFuture, CallId, Caller, Json, JsonObject};
use std::sync::Arc;

/// Where large results are stored, for `result_read`.
pub trait ResultStore: Send + Sync {
    /// Stores a result and gives its handle.
    fn store<'a>(
        &'a self,
        caller: &'a Caller,
        call: CallId,
        whole: Json,
    ) -> BoxFuture<'a, StoreResult<String>>;

    /// The whole result again. Someone else's handle is answered like one that does not exist.
    fn load<'a>(&'a self, caller: &'a Caller, handle: &'a str) -> BoxFuture<'a, StoreResult<Json>>;

    /// The result as text, to be read in parts. A store that keeps results elsewhere than in memory does not load them for it.
    fn open_text<'a>(
        &'a self,
        caller: &'a Caller,
        handle: &'a str,
    ) -> BoxFuture<'a, StoreResult<StoredText>> {
        Box::pin(async move { StoredText::render(&self.load(caller, handle).await?) })
    }
}

/// The right to store text, and to read nothing.
#[derive(Clone)]
pub struct ResultWriter(Arc<dyn ResultStore>);

impl ResultWriter {
    pub fn new(results: Arc<dyn ResultStore>) -> Self {
        Self(results)
    }

    /// Stores text as if it were the answer of a tool, which is what `result_read` reads, and gives its handle.
    pub async fn write(&self, caller: &Caller, call: CallId, text: &str) -> StoreResult<String> {
        let block = JsonObject::new().with("type", "text").with("text", text);
        let whole = JsonObject::new().with("content", Json::array([&block.to_json()]));
        self.0.store(caller, call, whole.to_json()).await
    }
}
