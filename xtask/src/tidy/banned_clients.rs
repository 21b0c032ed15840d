//! Checks that `deny.toml` bans crates that open connections themselves.

use super::Report;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use toml::{Table, Value};

/// Crates that resolve names or open connections without checks.
pub const BANNED_CLIENTS: &[&str] = &[
    "attohttpc",
    "awc",
    "curl",
    "git2",
    "gix-transport",
    "hickory-client",
    "hickory-resolver",
    "isahc",
    "libssh2-sys",
    "minreq",
    "reqwest",
    "russh",
    "ssh2",
    "surf",
    "tonic",
    "trust-dns-resolver",
    "tungstenite",
    "ureq",
];

pub fn check(deny: &str) -> Result<Report> {
    let table: Table = deny.parse()?;
    let banned = table.get("bans").and_then(|bans| bans.get("deny")).and_then(Value::as_array);
    let banned = banned.context("deny.toml bans nothing")?.iter();
    // A crate with exceptions is not banned.
    let banned: BTreeSet<&str> = banned
        .filter(|ban| ban.get("wrappers").is_none())
        .filter_map(|ban| ban.get("crate")?.as_str())
        .collect();
    let missing = BANNED_CLIENTS.iter().filter(|name| !banned.contains(*name));
    let problems =
        missing.map(|name| format!("deny.toml does not ban {name}, which opens connections itself"));
    Ok(Report { problems: problems.collect(), notes: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deny(without: &str, with: &str) -> String {
        let bans = BANNED_CLIENTS.iter().filter(|name| **name != without);
        let bans: Vec<String> = bans.map(|name| format!("{{ crate = \"{name}\" }}")).collect();
        format!("[bans]\ndeny = [{}, {with}]\n", bans.join(", "))
    }

    #[test]
    fn a_client_that_is_not_banned_is_a_problem() {
        for (without, with, count) in [
            ("", "", 0),
            ("reqwest", "", 1),
            ("ureq", "{ crate = \"reqwest\" }", 1),
            ("reqwest", "{ crate = \"reqwest\", wrappers = [\"x\"] }", 1),
        ] {
            let problems = check(&deny(without, with)).unwrap().problems;
            assert_eq!(problems.len(), count, "{problems:?}");
        }
        assert!(check("[bans]\n").is_err());
    }
}
