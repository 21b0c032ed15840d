//! All legacy sessions over HTTP.

use crate::legacy_session::Session;
use http::StatusCode;
use octo_model::{Caller, Principal};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Registry of sessions. They work only for the caller that started them.
pub struct SessionRegistry {
    state: Mutex<RegistryState>,
    max_sessions: usize,
    max_per_caller: usize,
}

#[derive(Default)]
struct RegistryState {
    sessions: HashMap<u128, Arc<Session>>,
    /// Sessions per caller.
    callers: HashMap<Principal, usize>,
}

impl RegistryState {
    fn forget(&mut self, session: &Session) {
        let owner = &session.client.caller.principal;
        if let Some(count) = self.callers.get_mut(owner) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.callers.remove(owner);
            }
        }
    }
}

/// Limit that prevents a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionLimit {
    /// Limit of the hub.
    Hub,
    /// Limit of the caller.
    Caller,
}

impl SessionLimit {
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Hub => StatusCode::SERVICE_UNAVAILABLE,
            Self::Caller => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    pub const fn message(self) -> &'static str {
        match self {
            Self::Hub => "The hub has too many sessions. Try again later.",
            Self::Caller => {
                "You have too many sessions. End some of them with DELETE, or wait until they are idle."
            }
        }
    }
}

impl SessionRegistry {
    pub fn new(max_sessions: usize, max_per_caller: usize) -> Self {
        Self { state: Mutex::default(), max_sessions, max_per_caller }
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a session, unless a limit is reached. Returns the one that is already registered with this id, if any.
    pub fn begin(&self, id: u128, session: Arc<Session>) -> Result<Arc<Session>, SessionLimit> {
        let mut all = self.lock();
        if let Some(known) = all.sessions.get(&id) {
            return Ok(Arc::clone(known));
        }
        if all.sessions.len() >= self.max_sessions {
            return Err(SessionLimit::Hub);
        }
        let count = all.callers.entry(session.client.caller.principal.clone()).or_default();
        if *count >= self.max_per_caller {
            return Err(SessionLimit::Caller);
        }
        *count += 1;
        all.sessions.insert(id, Arc::clone(&session));
        metrics::gauge!("octoprox_sessions").set(all.sessions.len() as f64);
        Ok(session)
    }

    /// Finds a session. Another caller's session looks like one that does not exist.
    pub fn find(&self, id: u128, caller: &Caller) -> Option<Arc<Session>> {
        let session = self.get(id)?;
        // A session keeps the scopes of its start: a caller with fewer now must start another.
        if !caller.covers(&session.client.caller) {
            return None;
        }
        session.touch();
        Some(session)
    }

    /// Finds a session for whom it belongs to.
    pub fn get(&self, id: u128) -> Option<Arc<Session>> {
        self.lock().sessions.get(&id).cloned()
    }

    pub fn end(&self, id: u128) -> Option<Arc<Session>> {
        let mut all = self.lock();
        let ended = all.sessions.remove(&id);
        if let Some(session) = &ended {
            all.forget(session);
        }
        drop(all);
        metrics::gauge!("octoprox_sessions").decrement(f64::from(u8::from(ended.is_some())));
        ended
    }

    /// Removes and returns all idle sessions, and sweeps their streams.
    pub fn sweep(&self, idle: Duration) -> Vec<Arc<Session>> {
        self.lock().sessions.values().for_each(|session| session.sweep_streams());
        self.remove_where(|session| session.is_idle(idle))
    }

    /// Removes and returns all sessions that match.
    pub fn remove_where(&self, mut is_over: impl FnMut(&Session) -> bool) -> Vec<Arc<Session>> {
        let mut all = self.lock();
        let ended: Vec<Arc<Session>> =
            all.sessions.extract_if(|_, session| is_over(session)).map(|(_, session)| session).collect();
        if ended.is_empty() {
            return ended;
        }
        ended.iter().for_each(|session| all.forget(session));
        if all.sessions.len() * 4 < all.sessions.capacity() {
            all.sessions.shrink_to_fit();
        }
        metrics::gauge!("octoprox_sessions").set(all.sessions.len() as f64);
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task_calls::mcp_fixture::modern_client;
    use serde_json::json;

    fn begin(sessions: &SessionRegistry, name: &str) -> Result<u128, SessionLimit> {
        let (id, session) = (uuid::Uuid::new_v4().as_u128(), Session::new(modern_client(name, json!({}))));
        sessions.begin(id, session).map(|_| id)
    }

    #[tokio::test]
    async fn one_caller_leaves_room_for_the_others() {
        let sessions = SessionRegistry::new(8, 2);
        let first = begin(&sessions, "anna").unwrap();
        begin(&sessions, "anna").unwrap();
        assert_eq!(begin(&sessions, "anna"), Err(SessionLimit::Caller));
        for name in ["bob", "cleo", "dora"] {
            begin(&sessions, name).unwrap();
            begin(&sessions, name).unwrap();
        }
        assert_eq!(begin(&sessions, "eve"), Err(SessionLimit::Hub));
        sessions.end(first).unwrap();
        assert_eq!(begin(&sessions, "bob"), Err(SessionLimit::Caller));
        begin(&sessions, "anna").unwrap();
        assert_eq!(sessions.sweep(Duration::ZERO).len(), 8);
        assert!(sessions.lock().callers.is_empty());
    }
}
