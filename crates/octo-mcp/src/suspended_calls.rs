//! Suspended calls of modern clients: kept until the retry or their expiry.

use crate::client_peer::{ModernPeer, Question};
use octo_admission::{FairSlot, FairSlots, ShedReason, SlotLimits};
use octo_hub::CallOutcome;
use octo_model::{CallId, Principal, ToolError};
use octo_toolkit::BoxFuture;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

const SUSPENDED_TTL: Duration = Duration::from_secs(600);
/// A call that has been suspended keeps its slot of the hub: all of them are a quarter of those, and one caller gets half
/// of that.
const MAX_SUSPENDED: usize = 1280;

/// A running call. Dropping it cancels the target.
pub struct RunningCall {
    pub who: Principal,
    pub call: BoxFuture<'static, CallOutcome>,
    pub peer: Arc<ModernPeer>,
    pub questions: mpsc::UnboundedReceiver<Question>,
    pub cancel: CancellationToken,
    /// Set once it may be suspended.
    slot: Option<FairSlot>,
}

impl RunningCall {
    /// A call whose client can be asked with `questions`. It runs while it is polled.
    pub fn new(
        who: Principal,
        call: BoxFuture<'static, CallOutcome>,
        peer: Arc<ModernPeer>,
        questions: mpsc::UnboundedReceiver<Question>,
        cancel: CancellationToken,
    ) -> Self {
        Self { who, call, peer, questions, cancel, slot: None }
    }

    /// Lets the call run while nobody polls it: the node of its server, if it is another one, requires signs of life.
    fn run_in_background(&mut self) {
        let call = std::mem::replace(&mut self.call, Box::pin(std::future::pending()));
        let task = AbortOnDropHandle::new(tokio::spawn(call));
        self.call = Box::pin(async move { task.await.unwrap_or_else(|error| failed_call(&error)) });
    }
}

fn failed_call(error: &JoinError) -> CallOutcome {
    let outcome = Err(ToolError::internal(error));
    CallOutcome { id: CallId::fresh(), took: Duration::ZERO, entry: None, from_app: false, outcome }
}

/// A call with the questions it asked.
pub struct SuspendedCall {
    pub running: RunningCall,
    pub questions: Vec<(String, Question)>,
    since: Instant,
}

pub struct SuspendedCalls {
    slots: Arc<FairSlots>,
    calls: Mutex<HashMap<u128, SuspendedCall>>,
}

impl Default for SuspendedCalls {
    fn default() -> Self {
        let limits = SlotLimits { caller_factor: 1, ..SlotLimits::new(MAX_SUSPENDED) };
        Self { slots: FairSlots::new("suspended_calls", limits), calls: Mutex::default() }
    }
}

impl SuspendedCalls {
    fn lock(&self) -> MutexGuard<'_, HashMap<u128, SuspendedCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a call the slot that it needs to be suspended, now and until its end.
    pub fn admit(&self, running: &mut RunningCall) -> Result<(), ShedReason> {
        if running.slot.is_none() {
            running.slot = Some(self.slots.try_acquire(&running.who)?);
            running.run_in_background();
        }
        Ok(())
    }

    /// Stores a call that was admitted with the questions it asked, and returns its ticket.
    pub fn insert(&self, running: RunningCall, questions: Vec<(String, Question)>) -> u128 {
        let ticket = uuid::Uuid::new_v4().as_u128();
        self.lock().insert(ticket, SuspendedCall { running, questions, since: Instant::now() });
        ticket
    }

    pub fn take(&self, ticket: u128) -> Option<SuspendedCall> {
        self.lock().remove(&ticket)
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub fn sweep(&self) {
        let mut waiting = self.lock();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task_calls::mcp_fixture::modern_client;
    use octo_model::{Json, JsonObject};
    use serde_json::json;

    fn running_call(subject: &str, call: BoxFuture<'static, CallOutcome>) -> RunningCall {
        let client = modern_client(subject, json!({}));
        let (peer, questions) = ModernPeer::new(&client, &JsonObject::new(), mpsc::channel(1).0);
        let who = client.caller.principal.clone();
        RunningCall::new(who, call, Arc::new(peer), questions, CancellationToken::new())
    }

    #[tokio::test]
    async fn a_suspended_call_runs() {
        let calls = SuspendedCalls::default();
        let (ended, has_ended) = tokio::sync::oneshot::channel();
        let call = async move {
            tokio::task::yield_now().await;
            let _ = ended.send(());
            let outcome = Ok(JsonObject::new().with("answer", Json::text("done")));
            CallOutcome { id: CallId::fresh(), took: Duration::ZERO, entry: None, from_app: false, outcome }
        };
        let mut running = running_call("ada", Box::pin(call));
        calls.admit(&mut running).unwrap();
        let ticket = calls.insert(running, Vec::new());
        has_ended.await.unwrap();
        let resumed = calls.take(ticket).unwrap().running.call.await;
        assert_eq!(resumed.outcome.unwrap().text("answer").as_deref(), Some("done"));
    }

    #[tokio::test]
    async fn questions_of_one_caller_leave_room_for_others_until_they_are_answered() {
        let calls = SuspendedCalls::default();
        let insert = |subject: &str| {
            let mut running = running_call(subject, Box::pin(std::future::pending()));
            calls.admit(&mut running).map(|()| calls.insert(running, Vec::new()))
        };
        let tickets: Vec<_> = std::iter::from_fn(|| insert("ada").ok()).collect();
        assert_eq!(tickets.len(), 640);
        assert_eq!(insert("ada"), Err(ShedReason::Caller));
        assert!(insert("eve").is_ok());
        drop(calls.take(tickets[0]));
        assert!(insert("ada").is_ok());
    }
}
