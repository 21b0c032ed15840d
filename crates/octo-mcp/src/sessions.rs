//! All legacy sessions over HTTP, and their end.

use crate::session::Session;
use octo_model::Caller;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Session ids are 128 random bits and only work for the caller that began the session.
pub struct Sessions {
    all: Mutex<HashMap<u128, Arc<Session>>>,
    most: usize,
}

impl Sessions {
    pub fn new(most: usize) -> Self {
        Self { all: Mutex::default(), most }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u128, Arc<Session>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the session, or nothing when there are too many.
    pub fn begin(&self, session: Arc<Session>) -> Option<String> {
        let id = uuid::Uuid::new_v4();
        let mut all = self.all();
        if all.len() >= self.most {
            return None;
        }
        all.insert(id.as_u128(), session);
        metrics::gauge!("octoprox_sessions").set(all.len() as f64);
        Some(id.as_simple().to_string())
    }

    /// Somebody else's session is answered like one that does not exist.
    pub fn find(&self, id: &str, caller: &Caller) -> Option<Arc<Session>> {
        let id = uuid::Uuid::try_parse(id).ok()?;
        let session = self.all().get(&id.as_u128()).cloned()?;
        let own =
            session.client.caller.subject == caller.subject && session.client.caller.tenant == caller.tenant;
        session.seen();
        own.then_some(session)
    }

    pub fn end(&self, id: &str) -> Option<Arc<Session>> {
        let id = uuid::Uuid::try_parse(id).ok()?;
        let ended = self.all().remove(&id.as_u128());
        metrics::gauge!("octoprox_sessions").decrement(f64::from(u8::from(ended.is_some())));
        ended
    }

    /// Takes out every session that was idle for too long, and the room they took.
    pub fn sweep(&self, idle: Duration) -> Vec<Arc<Session>> {
        let mut all = self.all();
        let ended: Vec<Arc<Session>> =
            all.values().filter(|session| session.is_idle(idle)).cloned().collect();
        if ended.is_empty() {
            return ended;
        }
        all.retain(|_, session| !session.is_idle(idle));
        if all.len() * 4 < all.capacity() {
            all.shrink_to_fit();
        }
        metrics::gauge!("octoprox_sessions").set(all.len() as f64);
        ended
    }
}
