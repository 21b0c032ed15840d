//! Results that are too large for a reply, stored for the caller.

mod result_text;

pub use result_text::{OWN_TEXT_META_KEY, ReadSeek, StoredText, TextSize, write_text};

use crate::{StoreError, StoreResult};
use octo_model::{BoxFuture, CallId, Caller, Json, JsonObject};
use std::sync::Arc;

/// Where large results are stored, for `result_read`.
pub trait ResultStore: Send + Sync {
    /// Stores a result and returns its handle.
    fn store<'a>(
        &'a self,
        caller: &'a Caller,
        call: CallId,
        whole: Json,
    ) -> BoxFuture<'a, StoreResult<String>>;

    /// Loads the whole result. Another caller's handle is treated as nonexistent.
    fn load<'a>(&'a self, caller: &'a Caller, handle: &'a str) -> BoxFuture<'a, StoreResult<Json>>;

    /// Opens the result as text, to be read in parts. A store on disk does not load it into memory for that.
    fn open_text<'a>(
        &'a self,
        caller: &'a Caller,
        handle: &'a str,
    ) -> BoxFuture<'a, StoreResult<StoredText>> {
        Box::pin(async move {
            let whole = self.load(caller, handle).await?;
            let text = tokio::task::spawn_blocking(move || StoredText::render(&whole)).await;
            text.unwrap_or_else(|error| Err(StoreError::internal(error)))
        })
    }
}

/// The right to store text, without reading.
#[derive(Clone)]
pub struct ResultWriter(Arc<dyn ResultStore>);

impl ResultWriter {
    pub fn new(results: Arc<dyn ResultStore>) -> Self {
        Self(results)
    }

    /// Stores text as if it were the reply of a tool, readable by `result_read`, and returns its handle.
    pub async fn write(&self, caller: &Caller, call: CallId, text: &str) -> StoreResult<String> {
        let block = JsonObject::new().with("type", "text").with("text", text);
        let whole = JsonObject::new().with("content", Json::array([&block.to_json()]));
        self.0.store(caller, call, whole.to_json()).await
    }
}
