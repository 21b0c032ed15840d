//! Epochs of clients without a session: requests of one caller to one profile belong together.

use octo_hub::ClientEpoch;
use octo_model::{Caller, Principal};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The epoch of a caller ends this long after its last request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1_800);
/// It ends after this time in any case.
const MAX_AGE: Duration = Duration::from_secs(4 * 3_600);
const MAX_EPOCHS: usize = 10_000;

type EpochKey = (Principal, String);

#[derive(Clone, Default)]
pub struct StatelessEpochs(Arc<Mutex<HashMap<EpochKey, StatelessEpoch>>>);

struct StatelessEpoch {
    began: Instant,
    last_used: Instant,
    epoch: ClientEpoch,
}

impl StatelessEpochs {
    fn lock(&self) -> MutexGuard<'_, HashMap<EpochKey, StatelessEpoch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn of(&self, caller: &Caller, profile: &str) -> ClientEpoch {
        let (mut epochs, now) = (self.lock(), Instant::now());
        let key = (caller.principal.clone(), profile.to_owned());
        if epochs.len() >= MAX_EPOCHS && !epochs.contains_key(&key) {
            let oldest = epochs.iter().min_by_key(|(_, known)| known.last_used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| epochs.remove(&oldest));
        }
        let fresh = || StatelessEpoch { began: now, last_used: now, epoch: ClientEpoch::default() };
        let known = epochs.entry(key).or_insert_with(fresh);
        known.last_used = now;
        known.epoch.clone()
    }

    pub fn sweep(&self) {
        let is_valid = |known: &StatelessEpoch| {
            known.last_used.elapsed() < IDLE_TIMEOUT && known.began.elapsed() < MAX_AGE
        };
        self.lock().retain(|_, known| is_valid(known));
    }
}
