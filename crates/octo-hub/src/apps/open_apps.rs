//! Servers whose apps a client has opened. A call from inside an app names the tool as its server does.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Names of the servers.
#[derive(Default)]
pub struct OpenApps(Mutex<BTreeSet<String>>);

impl OpenApps {
    pub fn add(&self, server: &str) {
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !servers.contains(server) {
            servers.insert(server.to_owned());
        }
    }

    pub fn contains(&self, server: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(server)
    }
}
