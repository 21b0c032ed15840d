//! All legacy sessions over HTTP, and their end.

use crate::session::Session;
use http::StatusCode;
use octo_model::{Caller, Principal};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Session ids are 128 random bits and only work for the caller that began the session.
pub struct Sessions {
    all: Mutex<All>,
    most: usize,
    most_per_caller: usize,
}

#[derive(Default)]
struct All {
    sessions: HashMap<u128, Arc<Session>>,
    /// How many each caller has.
    callers: HashMap<Principal, usize>,
}

impl All {
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

/// Why a session cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The hub has as many as it takes.
    Hub,
    /// The caller has.
    Caller,
}

impl Full {
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Hub => StatusCode::SERVICE_UNAVAILABLE,
            Self::Caller => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    pub const fn message(self) -> &'static str {
        match self {
            Self::Hub => "There are too many sessions. Try again later.",
            Self::Caller => {
                "You have too many sessions. End some of them with DELETE, or wait until they are idle."
            }
        }
    }
}

impl Sessions {
    pub fn new(most: usize, most_per_caller: usize) -> Self {
        Self { all: Mutex::default(), most, most_per_caller }
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the session, unless there are too many.
    pub fn begin(&self, session: Arc<Session>) -> Result<String, Full> {
        let id = uuid::Uuid::new_v4();
        let mut all = self.all();
        if all.sessions.len() >= self.most {
            return Err(Full::Hub);
        }
        let count = all.callers.entry(session.client.caller.principal.clone()).or_default();
        if *count >= self.most_per_caller {
            return Err(Full::Caller);
        }
        *count += 1;
        all.sessions.insert(id.as_u128(), session);
        metrics::gauge!("octoprox_sessions").set(all.sessions.len() as f64);
        Ok(id.as_simple().to_string())
    }

    /// Somebody else's session is answered like one that does not exist.
    pub fn find(&self, id: &str, caller: &Caller) -> Option<Arc<Session>> {
        let id = uuid::Uuid::try_parse(id).ok()?;
        let session = self.all().sessions.get(&id.as_u128()).cloned()?;
        // It runs with the rights that it began with: whoever has fewer now begins another.
        if !caller.covers(&session.client.caller) {
            return None;
        }
        session.seen();
        Some(session)
    }

    pub fn end(&self, id: &str) -> Option<Arc<Session>> {
        let id = uuid::Uuid::try_parse(id).ok()?;
        let mut all = self.all();
        let ended = all.sessions.remove(&id.as_u128());
        if let Some(session) = &ended {
            all.forget(session);
        }
        drop(all);
        metrics::gauge!("octoprox_sessions").decrement(f64::from(u8::from(ended.is_some())));
        ended
    }

    /// Takes out every session that was idle for too long, and the room they took.
    pub fn sweep(&self, idle: Duration) -> Vec<Arc<Session>> {
        self.all().sessions.values().for_each(|session| session.sweep_streams());
        self.take(|session| session.is_idle(idle))
    }

    /// Takes out every session that this is true of.
    pub fn take(&self, mut is_over: impl FnMut(&Session) -> bool) -> Vec<Arc<Session>> {
        let mut all = self.all();
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
    use crate::background::bench::plain;
    use serde_json::json;

    fn session(name: &str) -> Arc<Session> {
        Session::new(plain(name, json!({})))
    }

    #[tokio::test]
    async fn one_caller_leaves_room_for_the_others() {
        let sessions = Sessions::new(8, 2);
        let first = sessions.begin(session("anna")).unwrap();
        sessions.begin(session("anna")).unwrap();
        assert_eq!(sessions.begin(session("anna")), Err(Full::Caller));
        for name in ["bob", "cleo", "dora"] {
            sessions.begin(session(name)).unwrap();
            sessions.begin(session(name)).unwrap();
        }
        assert_eq!(sessions.begin(session("eve")), Err(Full::Hub));
        sessions.end(&first).unwrap();
        assert_eq!(sessions.begin(session("bob")), Err(Full::Caller));
        sessions.begin(session("anna")).unwrap();
        assert_eq!(sessions.sweep(Duration::ZERO).len(), 8);
        assert!(sessions.all().callers.is_empty());
    }
}
