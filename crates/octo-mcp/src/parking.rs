//! Calls of modern clients that wait for an answer: kept until the retry or their end.

use crate::peer::{ModernPeer, Question};
use octo_hub::CallOutcome;
use octo_toolkit::BoxFuture;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const LIFE: Duration = Duration::from_secs(600);
const MOST: usize = 10_000;

/// A call in the middle of its run. Dropping it cancels the target.
pub struct Running {
    pub call: BoxFuture<'static, CallOutcome>,
    pub peer: Arc<ModernPeer>,
    pub questions: mpsc::UnboundedReceiver<Question>,
    pub cancel: CancellationToken,
}

/// A call with the questions it asked.
pub struct Parked {
    pub running: Running,
    pub open: Vec<(String, Question)>,
    since: Instant,
}

impl Parked {
    pub fn new(running: Running, open: Vec<(String, Question)>) -> Self {
        Self { running, open, since: Instant::now() }
    }
}

#[derive(Default)]
pub struct Parking(Mutex<HashMap<u128, Parked>>);

impl Parking {
    /// The ticket, or nothing when too many wait already.
    pub fn park(&self, parked: Parked) -> Option<u128> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MOST {
            return None;
        }
        let ticket = uuid::Uuid::new_v4().as_u128();
        waiting.insert(ticket, parked);
        Some(ticket)
    }

    pub fn take(&self, ticket: u128) -> Option<Parked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&ticket)
    }

    pub fn sweep(&self) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let late: Vec<u128> = waiting
            .iter()
            .filter(|(_, parked)| parked.since.elapsed() > LIFE)
            .map(|(ticket, _)| *ticket)
            .collect();
        let dropped: Vec<Parked> = late.iter().filter_map(|ticket| waiting.remove(ticket)).collect();
        drop(waiting);
        drop(dropped);
    }
}
