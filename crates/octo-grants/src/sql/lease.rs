//! A session leased to one call.

use super::db_session::{Session, TransactionState, cancel};
use super::pool::PoolState;
use super::server_error;
use octo_model::ToolError;
use postgres_protocol::message::backend::Message;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Timeout for a cancelled statement to finish.
const CANCEL_WAIT_TIMEOUT: Duration = Duration::from_secs(3);

/// Ends in one of two ways: released after a complete exchange, to be reset, or dropped, which cancels what still
/// runs at the server and closes it.
pub struct Lease {
    session: Option<Session>,
    permit: Option<OwnedSemaphorePermit>,
    pool: Arc<PoolState>,
}

impl Lease {
    pub(super) fn new(session: Session, permit: OwnedSemaphorePermit, pool: Arc<PoolState>) -> Self {
        Self { session: Some(session), permit: Some(permit), pool }
    }

    pub async fn send(&mut self, frames: &[u8], answers: usize) -> Result<(), ToolError> {
        let sent = match &mut self.session {
            Some(session) => session.send(frames, answers).await,
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        sent.map_err(|error| server_error::connection_error(&self.pool.name, error))
    }

    pub async fn next(&mut self) -> Result<Message, ToolError> {
        let next = match &mut self.session {
            Some(session) => session.next().await,
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        next.map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => {
                ToolError::new(octo_model::Kind::TooLarge, "One row exceeds the size limit.")
                    .hint("Select fewer columns, or parts of large values with substring() or length().")
            }
            _ => server_error::connection_error(&self.pool.name, error),
        })
    }

    /// Whether all replies have arrived.
    pub fn is_done(&self) -> bool {
        self.session.as_ref().is_none_or(Session::is_done)
    }

    pub fn transaction_state(&self) -> TransactionState {
        self.session.as_ref().map_or(TransactionState::Failed, Session::transaction_state)
    }

    /// Cancels what this session runs, and waits briefly for its remaining replies.
    pub async fn stop(&mut self) {
        let Some(key) = self.session.as_ref().and_then(|session| session.cancel_key) else { return };
        cancel(&self.pool.login, key).await;
        let rest = async {
            while !self.is_done() {
                if self.next().await.is_err() {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(CANCEL_WAIT_TIMEOUT, rest).await;
    }

    /// Returns it to the pool, which resets it in the background. With outstanding replies it is closed instead.
    pub fn release(mut self) {
        if !self.is_done() {
            return;
        }
        if let (Some(session), Some(permit)) = (self.session.take(), self.permit.take()) {
            let pool = Arc::clone(&self.pool);
            tokio::spawn(async move {
                pool.restore(session).await;
                drop(permit);
            });
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (Some(session), permit) = (self.session.take(), self.permit.take()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let pool = Arc::clone(&self.pool);
        runtime.spawn(async move {
            if let (false, Some(key)) = (session.is_done(), session.cancel_key) {
                cancel(&pool.login, key).await;
            }
            session.close().await;
            drop(permit);
        });
    }
}
