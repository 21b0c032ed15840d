//! Plan for running servers after a change of settings: connect, drop, swap or leave unchanged.

use crate::settings::model::server_model::Server;
use crate::settings::reload::applied_servers::AppliedServers;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

pub type Servers = BTreeMap<String, Server>;

/// Action for one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Connect,
    Drop,
    /// The new connection takes over; the old one closes when its calls have completed.
    Swap,
    Unchanged,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Connect => "connect",
            Self::Drop => "drop",
            Self::Swap => "swap",
            Self::Unchanged => "unchanged",
        })
    }
}

/// Action for one server and the reason. Names settings, never their values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerChange {
    pub server: String,
    pub action: Action,
    pub reason: String,
}

/// Returns the changes that lead from `old` to `new`, sorted by name.
pub fn plan(old: &Servers, new: &Servers) -> Vec<ServerChange> {
    AppliedServers::with_salt(old, String::new()).plan(new)
}

/// Fingerprint of one server, for comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct ServerFingerprint {
    pub enabled: bool,
    /// Fingerprint of each setting that affects a connection.
    pub fields: BTreeMap<String, String>,
}

/// Compares two fingerprints of one server.
pub fn compare_server(
    server: &str,
    old: Option<&ServerFingerprint>,
    new: Option<&ServerFingerprint>,
) -> Option<ServerChange> {
    use Action::{Connect, Drop, Swap, Unchanged};
    let (action, why) = match (old, new) {
        (None, None) => return None,
        (None, Some(new)) if new.enabled => (Connect, "new".to_owned()),
        (None, Some(_)) => (Unchanged, "new, but disabled".to_owned()),
        (Some(old), None) if old.enabled => (Drop, "removed from the settings".to_owned()),
        (Some(_), None) => (Unchanged, "disabled and removed from the settings".to_owned()),
        (Some(old), Some(new)) => match (old.enabled, new.enabled) {
            (false, true) => (Connect, "enabled".to_owned()),
            (true, false) => (Drop, "disabled".to_owned()),
            (false, false) => (Unchanged, "still disabled".to_owned()),
            (true, true) => match changed_fields(old, new) {
                names if names.is_empty() => (Unchanged, "no changes".to_owned()),
                names => (Swap, format!("{} changed", join_names(&names))),
            },
        },
    };
    Some(ServerChange { server: server.to_owned(), action, reason: why })
}

fn changed_fields<'a>(old: &'a ServerFingerprint, new: &'a ServerFingerprint) -> Vec<&'a str> {
    let names: std::collections::BTreeSet<&String> = old.fields.keys().chain(new.fields.keys()).collect();
    let differs = |name: &&&String| old.fields.get(**name) != new.fields.get(**name);
    names.iter().filter(differs).map(|name| name.as_str()).collect()
}

/// `a`, `a` and `b`, or `a`, `b` and `c`.
fn join_names(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Secret;

    fn servers(yaml: &str) -> Servers {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn each_server_gets_what_its_change_asks_for() {
        let old = servers(
            "same: {command: x, args: [a]}
gone: {command: x}
gone-off: {command: x, enabled: false}
off: {command: x}
on: {command: x, enabled: false}
moved: {url: 'https://a.test', headers: {A: '1'}, timeout_seconds: 5}
named: {command: x, name: Old}
still-off: {command: x, enabled: false}",
        );
        let new = servers(
            "same: {command: x, args: [a]}
off: {command: x, enabled: false}
on: {command: x}
moved: {url: 'https://b.test', headers: {A: '2'}, timeout_seconds: 6}
named: {command: x, name: New}
still-off: {command: y, enabled: false}
fresh: {command: x}
fresh-off: {command: x, enabled: false}",
        );
        let planned = plan(&old, &new);
        let said: Vec<String> =
            planned.iter().map(|it| format!("{} {}: {}", it.action, it.server, it.reason)).collect();
        let expected = [
            "connect fresh: new",
            "unchanged fresh-off: new, but disabled",
            "drop gone: removed from the settings",
            "unchanged gone-off: disabled and removed from the settings",
            "swap moved: `headers`, `timeout_seconds` and `url` changed",
            "unchanged named: no changes",
            "drop off: disabled",
            "connect on: enabled",
            "unchanged same: no changes",
            "unchanged still-off: still disabled",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_changed_secret_is_noticed_and_not_told() {
        let with = |key: &str| {
            let env = [("API_KEY".to_owned(), Secret::new(key))].into();
            Servers::from([("a".to_owned(), Server { command: Some("x".into()), env, ..Server::default() })])
        };
        let planned = plan(&with("canary-1"), &with("canary-2"));
        assert_eq!((planned[0].action, planned[0].reason.as_str()), (Action::Swap, "`env` changed"));
        assert!(!format!("{planned:?}").contains("canary"));
    }
}
