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

    /// The only open server to which this applies. If several do, a call could reach the wrong one.
    pub fn only(&self, applies: impl Fn(&str) -> bool) -> Option<String> {
        let servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fitting = servers.iter().filter(|server| applies(server));
        fitting.next().filter(|_| fitting.next().is_none()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_only_guessed_if_there_is_one() {
        let apps = OpenApps::default();
        assert_eq!(apps.only(|_| true), None);
        apps.add("maps");
        apps.add("maps");
        assert_eq!(apps.only(|_| true).as_deref(), Some("maps"));
        apps.add("pay");
        assert_eq!(apps.only(|_| true), None);
        assert_eq!(apps.only(|server| server == "pay").as_deref(), Some("pay"));
    }
}
