//! Suspended calls of modern clients: kept until the retry or their expiry.

use crate::client_peer::{ModernPeer, Question};
use octo_hub::CallOutcome;
use octo_toolkit::BoxFuture;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const SUSPENDED_TTL: Duration = Duration::from_secs(600);
const MAX_SUSPENDED: usize = 10_000;

/// A running call. Dropping it cancels the target.
pub struct RunningCall {
    pub call: BoxFuture<'static, CallOutcome>,
    pub peer: Arc<ModernPeer>,
    pub questions: mpsc::UnboundedReceiver<Question>,
    pub cancel: CancellationToken,
}

/// A call with the questions it asked.
pub struct SuspendedCall {
    pub running: RunningCall,
    pub questions: Vec<(String, Question)>,
    since: Instant,
}

impl SuspendedCall {
    pub fn new(running: RunningCall, questions: Vec<(String, Question)>) -> Self {
        Self { running, questions, since: Instant::now() }
    }
}

#[derive(Default)]
pub struct SuspendedCalls(Mutex<HashMap<u128, SuspendedCall>>);

impl SuspendedCalls {
    /// Stores a call and returns its ticket; `None` if too many are suspended.
    pub fn insert(&self, parked: SuspendedCall) -> Option<u128> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_SUSPENDED {
            return None;
        }
        let ticket = uuid::Uuid::new_v4().as_u128();
        waiting.insert(ticket, parked);
        Some(ticket)
    }

    pub fn take(&self, ticket: u128) -> Option<SuspendedCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&ticket)
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub fn sweep(&self) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let late: Vec<u128> = waiting
            .iter()
            .filter(|(_, parked)| parked.since.elapsed() > SUSPENDED_TTL)
            .map(|(ticket, _)| *ticket)
            .collect();
        let dropped: Vec<SuspendedCall> = late.iter().filter_map(|ticket| waiting.remove(ticket)).collect();
        drop(waiting);
        drop(dropped);
    }
}
