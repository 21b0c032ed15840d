//! The end of a connection, told once and heard by everybody.

use crate::fail::Fail;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// Shared by those who notice the end and those who wait for it.
#[derive(Clone, Default)]
pub(crate) struct Lost(Arc<Inner>);

#[derive(Default)]
struct Inner {
    token: CancellationToken,
    why: OnceLock<Fail>,
}

impl Lost {
    /// The first reason stands.
    pub(crate) fn set(&self, why: Fail) {
        let _ = self.0.why.set(why);
        self.0.token.cancel();
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.token.is_cancelled()
    }

    pub(crate) async fn wait(&self) -> Fail {
        self.0.token.cancelled().await;
        self.0.why.get().cloned().unwrap_or_else(|| Fail::Lost("the connection ended".to_owned()))
    }
}
