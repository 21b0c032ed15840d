//! Fingerprints of the servers that a hub has applied, to compute later changes.

use crate::settings::model::server_auth::ServerAuth;
use crate::settings::model::server_model::{Kind, Server};
use crate::settings::reload::server_plan::{ServerChange, ServerFingerprint, Servers, compare_server};
use octo_hub::trust::TrustSetting;
use octo_model::{Secret, sha256_hex};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const APPLIED_FILE: &str = "servers.applied.json";
/// Far above the size of any server list.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// An applied set of servers. Values are hashed with a salt and cannot be recovered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedServers {
    salt: String,
    servers: BTreeMap<String, ServerFingerprint>,
    /// Whether the hub started servers in their own directories. Earlier ones did so in the workspace.
    #[serde(default)]
    own_dirs: bool,
}

impl AppliedServers {
    /// Creates fingerprints of the servers with a random salt.
    pub fn new_salted(servers: &Servers) -> io::Result<Self> {
        let salt = crate::bearer_token::generate_token()
            .map_err(|_| io::Error::other("system random number generator unavailable"))?;
        Ok(Self::with_salt(servers, salt))
    }

    pub(crate) fn with_salt(servers: &Servers, salt: String) -> Self {
        let servers =
            servers.iter().map(|(name, server)| (name.clone(), fingerprint_server(server, &salt))).collect();
        Self { salt, servers, own_dirs: true }
    }

    /// Returns those of these servers that the hub started in the workspace.
    pub fn started_in_workspace<'a>(&self, servers: &'a Servers) -> Vec<&'a str> {
        let moved = servers.iter().filter(|(name, server)| {
            let was_there = self.servers.get(*name).is_some_and(|applied| applied.enabled);
            !self.own_dirs && was_there && server.is_program() && server.enabled && server.cwd.is_none()
        });
        moved.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns what would change if these servers were applied now.
    pub fn plan(&self, new: &Servers) -> Vec<ServerChange> {
        let new = Self::with_salt(new, self.salt.clone()).servers;
        let names: BTreeSet<&String> = self.servers.keys().chain(new.keys()).collect();
        names
            .into_iter()
            .filter_map(|name| compare_server(name, self.servers.get(name), new.get(name)))
            .collect()
    }

    /// Reads what the last hub with this state directory applied, if any.
    pub fn read(state: &Path) -> Option<Self> {
        let mut text = String::new();
        std::fs::File::open(state.join(APPLIED_FILE))
            .ok()?
            .take(MAX_FILE_BYTES)
            .read_to_string(&mut text)
            .ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Writes the fingerprints to the state directory.
    pub fn write(&self, state: &Path) -> io::Result<()> {
        let fresh = state.join(format!("{APPLIED_FILE}.{}", std::process::id()));
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        std::fs::rename(&fresh, state.join(APPLIED_FILE)).inspect_err(|_| drop(std::fs::remove_file(&fresh)))
    }
}

/// Fingerprints all settings that a connection depends on. Adding a setting requires handling it here to compile.
fn fingerprint_server(server: &Server, salt: &str) -> ServerFingerprint {
    let Server {
        name: _,
        command,
        package,
        digest,
        args,
        env,
        cwd,
        url,
        headers,
        document,
        kind,
        auth,
        enabled,
        connect,
        idle_timeout_seconds,
        start_timeout_seconds,
        timeout_seconds,
        share,
        pool,
        per_minute,
        max_concurrent,
        sandbox,
        era,
        trust,
        effects,
        questions,
        question_hosts,
    } = server;
    let fields = [
        ("command", format!("{command:?}")),
        ("args", format!("{args:?}")),
        ("env", expose_all(env)),
        ("cwd", format!("{cwd:?}")),
        ("url", format!("{url:?}")),
        ("headers", expose_all(headers)),
        ("document", format!("{document:?}")),
        ("auth", auth.as_ref().map(expose_auth).unwrap_or_default()),
        ("connect", format!("{connect:?}")),
        ("idle_seconds", idle_timeout_seconds.to_string()),
        ("start_seconds", start_timeout_seconds.to_string()),
        ("timeout_seconds", timeout_seconds.to_string()),
        ("share", format!("{share:?}")),
        ("pool", pool.to_string()),
        ("per_minute", format!("{per_minute:?}")),
        ("in_flight", format!("{max_concurrent:?}")),
        ("sandbox", format!("{sandbox:?}")),
        ("era", format!("{era:?}")),
        ("trust", trust_text(trust)),
    ];
    // Absent unless set, so that existing fingerprints stay valid.
    let effects = effects.as_ref().map(|effects| format!("{effects:?}"));
    // Other types follow from the rest of the settings.
    let kind = kind.filter(|kind| *kind == Kind::Sse).map(|kind| format!("{kind:?}"));
    let default = Server::default();
    let questions = (*questions != default.questions).then(|| format!("{questions:?}"));
    let hosts = (!question_hosts.is_empty()).then(|| format!("{question_hosts:?}"));
    let later = [
        ("package", package),
        ("digest", digest),
        ("effects", &effects),
        ("type", &kind),
        ("questions", &questions),
        ("question_hosts", &hosts),
    ];
    let later = later.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
    let fields = fields
        .into_iter()
        .chain(later)
        .map(|(name, value)| (name.to_owned(), fingerprint(&format!("{salt}\0{name}\0{value}"))));
    ServerFingerprint { enabled: *enabled, fields: fields.collect() }
}

fn expose_all(values: &BTreeMap<String, Secret>) -> String {
    format!("{:?}", values.iter().map(|(name, value)| (name, value.expose())).collect::<Vec<_>>())
}

fn expose_auth(auth: &ServerAuth) -> String {
    format!("{auth:?} {:?}", auth.client_secret.as_ref().map(Secret::expose))
}

/// The form used by existing fingerprints; changing it would mark every server as changed once.
fn trust_text(trust: &TrustSetting) -> String {
    match trust {
        TrustSetting::Shorthand(changes) => format!("Word({changes:?})"),
        TrustSetting::Detailed(parts) => format!("Parts({parts:?})"),
    }
}

fn fingerprint(text: &str) -> String {
    let mut hash = sha256_hex(text.as_bytes());
    hash.truncate(32);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::reload::server_plan::Action;

    #[test]
    fn what_is_kept_tells_changes_and_nothing_else() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(AppliedServers::read(state.path()), None);
        let old: Servers =
            serde_saphyr::from_str("a: {command: x, env: {KEY: canary-7}}\nb: {url: 'https://u:canary-8@x'}")
                .unwrap();
        let applied = AppliedServers::new_salted(&old).unwrap();
        applied.write(state.path()).unwrap();
        let kept = std::fs::read_to_string(state.path().join(APPLIED_FILE)).unwrap();
        assert!(!kept.contains("canary"), "{kept}");
        let read = AppliedServers::read(state.path()).unwrap();
        assert_eq!(read, applied);
        assert!(read.plan(&old).iter().all(|change| change.action == Action::Unchanged));
        let new: Servers = serde_saphyr::from_str("a: {command: x, env: {KEY: canary-9}}").unwrap();
        let actions: Vec<Action> = read.plan(&new).iter().map(|change| change.action).collect();
        assert_eq!(actions, [Action::Swap, Action::Drop]);
        assert_ne!(AppliedServers::new_salted(&old).unwrap(), applied, "each has a salt of its own");
        std::fs::write(state.path().join(APPLIED_FILE), "broken").unwrap();
        assert_eq!(AppliedServers::read(state.path()), None);
    }

    #[test]
    fn servers_of_an_earlier_version_started_in_the_workspace() {
        let servers: Servers =
            serde_saphyr::from_str("a: {command: x}\nb: {command: x, cwd: /}\nc: {url: 'https://x.test'}")
                .unwrap();
        let applied = AppliedServers::with_salt(&servers, String::new());
        assert!(applied.started_in_workspace(&servers).is_empty());
        let mut old = serde_json::to_value(&applied).unwrap();
        old.as_object_mut().unwrap().remove("own_dirs");
        let old: AppliedServers = serde_json::from_value(old).unwrap();
        assert_eq!(old.started_in_workspace(&servers), ["a"]);
        let new: Servers = serde_saphyr::from_str("d: {command: x}").unwrap();
        assert!(old.started_in_workspace(&new).is_empty(), "it was never started there");
    }

    #[test]
    fn a_server_that_becomes_sse_is_connected_again() {
        let fingerprint = |kind: &str| {
            let servers: Servers =
                serde_saphyr::from_str(&format!("a: {{url: 'https://x.test/mcp'{kind}}}")).unwrap();
            AppliedServers::with_salt(&servers, String::new())
        };
        let plain = fingerprint("");
        assert_eq!(fingerprint(", type: http"), plain, "it follows from the URL");
        assert!(!plain.servers["a"].fields.contains_key("type"));
        let sse: Servers = serde_saphyr::from_str("a: {url: 'https://x.test/mcp', type: sse}").unwrap();
        let change = plain.plan(&sse).remove(0);
        assert_eq!((change.action, change.reason.as_str()), (Action::Swap, "`type` changed"));
        assert_eq!(fingerprint(", type: sse").plan(&sse)[0].action, Action::Unchanged);
    }
}
