//! Text that is too large for a reply, kept under a handle for `result_read`.

use octo_model::{CallId, Caller, ToolError};
use std::pin::Pin;
use std::sync::Arc;

/// What keeps the text: the hub's store.
pub trait Keeps: Send + Sync {
    fn keep<'a>(
        &'a self,
        caller: &'a Caller,
        call: CallId,
        text: String,
    ) -> Pin<Box<dyn Future<Output = Result<String, ToolError>> + Send + 'a>>;
}

/// Hands large text to the hub and gets the handle under which its caller can read it.
#[derive(Clone)]
pub struct Keep(Arc<dyn Keeps>);

impl Keep {
    pub fn new(keeps: Arc<dyn Keeps>) -> Self {
        Self(keeps)
    }

    pub async fn keep(&self, caller: &Caller, call: CallId, text: String) -> Result<String, ToolError> {
        self.0.keep(caller, call, text).await
    }
}
