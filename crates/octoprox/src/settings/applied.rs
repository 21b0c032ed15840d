//! The servers that a hub has taken on, kept as fingerprints so that a later look can tell what would change.

use super::plan::{Change, Servers, Sketch, compare};
use super::secret::Secret;
use super::server::Server;
use super::server_auth::ServerAuth;
use aws_lc_rs::digest::{SHA256, digest};
use octo_hub::trust::TrustSetting;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const FILE: &str = "servers.applied.json";
/// More than any list of servers needs.
const LARGEST: u64 = 8 << 20;

/// A set of servers as it was applied. Nothing in it can be read back: values are hashed with a salt of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    salt: String,
    servers: BTreeMap<String, Sketch>,
}

impl Applied {
    /// The servers of these settings, to be kept.
    pub fn of(servers: &Servers) -> io::Result<Self> {
        let salt = crate::token::fresh().map_err(|_| io::Error::other("the system gives no randomness"))?;
        Ok(Self::salted(servers, salt))
    }

    pub(super) fn salted(servers: &Servers, salt: String) -> Self {
        let servers = servers.iter().map(|(name, server)| (name.clone(), sketch(server, &salt))).collect();
        Self { salt, servers }
    }

    /// What would change if these servers were applied now.
    pub fn plan(&self, new: &Servers) -> Vec<Change> {
        let new = Self::salted(new, self.salt.clone()).servers;
        let names: BTreeSet<&String> = self.servers.keys().chain(new.keys()).collect();
        names.into_iter().filter_map(|name| compare(name, self.servers.get(name), new.get(name))).collect()
    }

    /// What the last hub with this folder of data has applied; nothing when there was none.
    pub fn read(state: &Path) -> Option<Self> {
        let mut text = String::new();
        std::fs::File::open(state.join(FILE)).ok()?.take(LARGEST).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps it for later looks.
    pub fn write(&self, state: &Path) -> io::Result<()> {
        let fresh = state.join(format!("{FILE}.{}", std::process::id()));
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        std::fs::rename(&fresh, state.join(FILE)).inspect_err(|_| drop(std::fs::remove_file(&fresh)))
    }
}

/// Every setting that a connection depends on. A new setting does not compile until it is sorted in here.
fn sketch(server: &Server, salt: &str) -> Sketch {
    let Server {
        name: _,
        command,
        args,
        env,
        cwd,
        url,
        headers,
        document,
        kind: _,
        auth,
        enabled,
        connect,
        idle_seconds,
        start_seconds,
        timeout_seconds,
        share,
        pool,
        per_minute,
        in_flight,
        sandbox,
        era,
        trust,
    } = server;
    let fields = [
        ("command", format!("{command:?}")),
        ("args", format!("{args:?}")),
        ("env", exposed(env)),
        ("cwd", format!("{cwd:?}")),
        ("url", format!("{url:?}")),
        ("headers", exposed(headers)),
        ("document", format!("{document:?}")),
        ("auth", auth.as_ref().map(exposed_auth).unwrap_or_default()),
        ("connect", format!("{connect:?}")),
        ("idle_seconds", idle_seconds.to_string()),
        ("start_seconds", start_seconds.to_string()),
        ("timeout_seconds", timeout_seconds.to_string()),
        ("share", format!("{share:?}")),
        ("pool", pool.to_string()),
        ("per_minute", format!("{per_minute:?}")),
        ("in_flight", format!("{in_flight:?}")),
        ("sandbox", format!("{sandbox:?}")),
        ("era", format!("{era:?}")),
        ("trust", trust_text(trust)),
    ];
    let fields =
        fields.map(|(name, value)| (name.to_owned(), fingerprint(&format!("{salt}\0{name}\0{value}"))));
    Sketch { enabled: *enabled, fields: fields.into() }
}

fn exposed(values: &BTreeMap<String, Secret>) -> String {
    format!("{:?}", values.iter().map(|(name, value)| (name, value.expose())).collect::<Vec<_>>())
}

fn exposed_auth(auth: &ServerAuth) -> String {
    format!("{auth:?} {:?}", auth.client_secret.as_ref().map(Secret::expose))
}

/// The words that the fingerprints on disk were made of; with others every server would count as changed once.
fn trust_text(trust: &TrustSetting) -> String {
    match trust {
        TrustSetting::Shorthand(changes) => format!("Word({changes:?})"),
        TrustSetting::Detailed(parts) => format!("Parts({parts:?})"),
    }
}

fn fingerprint(text: &str) -> String {
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref().iter().take(16).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::plan::Action;

    #[test]
    fn what_is_kept_tells_changes_and_nothing_else() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(Applied::read(state.path()), None);
        let old: Servers =
            serde_saphyr::from_str("a: {command: x, env: {KEY: canary-7}}\nb: {url: 'https://u:canary-8@x'}")
                .unwrap();
        let applied = Applied::of(&old).unwrap();
        applied.write(state.path()).unwrap();
        let kept = std::fs::read_to_string(state.path().join(FILE)).unwrap();
        assert!(!kept.contains("canary"), "{kept}");
        let read = Applied::read(state.path()).unwrap();
        assert_eq!(read, applied);
        assert!(read.plan(&old).iter().all(|change| change.action == Action::Unchanged));
        let new: Servers = serde_saphyr::from_str("a: {command: x, env: {KEY: canary-9}}").unwrap();
        let actions: Vec<Action> = read.plan(&new).iter().map(|change| change.action).collect();
        assert_eq!(actions, [Action::Swap, Action::Drop]);
        assert_ne!(Applied::of(&old).unwrap(), applied, "each has a salt of its own");
        std::fs::write(state.path().join(FILE), "broken").unwrap();
        assert_eq!(Applied::read(state.path()), None);
    }
}
