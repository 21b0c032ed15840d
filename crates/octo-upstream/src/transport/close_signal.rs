//! Close signal of a connection, set once, with any number of waiters.

use crate::error::UpstreamError;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// Shared by the tasks that detect the end and those that wait for it.
#[derive(Clone, Default)]
pub(crate) struct CloseSignal(Arc<CloseState>);

#[derive(Default)]
struct CloseState {
    token: CancellationToken,
    reason: OnceLock<UpstreamError>,
}

impl CloseSignal {
    /// The first reason wins.
    pub(crate) fn set(&self, why: UpstreamError) {
        let _ = self.0.reason.set(why);
        self.0.token.cancel();
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.token.is_cancelled()
    }

    pub(crate) async fn wait(&self) -> UpstreamError {
        self.0.token.cancelled().await;
        self.0
            .reason
            .get()
            .cloned()
            .unwrap_or_else(|| UpstreamError::ConnectionLost("the connection ended".to_owned()))
    }
}
