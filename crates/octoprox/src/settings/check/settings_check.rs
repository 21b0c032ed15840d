//! Checks beyond the types: names, URLs, patterns and combinations of settings.

mod check_fleet;
mod check_rules;
mod check_servers;
mod check_store;

use crate::settings::Settings;
use crate::settings::check::settings_problem::SettingsProblem;
use crate::settings::load::settings_layers::Layers;
pub use check_servers::MAX_SERVER_NAME_LEN;
use octo_hub::{Profile, ProfileSettings};
use std::net::IpAddr;
use tracing_subscriber::filter::Targets;
use url::Url;

/// Names reserved for the hub, in addition to the toolbox names.
const RESERVED_NAMES: [&str; 4] = ["results", "tools", "hub", "octoprox"];

/// Returns all problems, in the order of the settings.
pub fn check_settings(settings: &Settings, layers: &Layers) -> Vec<SettingsProblem> {
    let mut checks = Checks { settings, layers, problems: Vec::new() };
    checks.check_paths();
    checks.check_listen();
    checks.check_servers();
    checks.check_profiles();
    checks.check_rules();
    checks.check_tokens();
    checks.check_urls();
    checks.check_minimums();
    checks.check_log_level();
    checks.problems
}

/// Requires tokens for any listen address other than loopback.
pub fn unauthenticated_binding(settings: &Settings, layers: &Layers) -> Option<SettingsProblem> {
    if !settings.auth.tokens.is_empty() {
        return None;
    }
    let hosts = [
        ("listen.host", &settings.listen.host, true),
        ("admin.host", &settings.admin.host, settings.admin.enabled),
    ];
    let open = |(path, host, used): (&'static str, &String, bool)| {
        listen_address(host).filter(|host| used && !host.is_loopback()).map(|host| (path, host))
    };
    let (path, host) = hosts.into_iter().find_map(open)?;
    Some(SettingsProblem::new(
        layers.origin(path),
        path,
        format!("{host} is not a loopback address, and no tokens are configured."),
        "Add a token (`octoprox token new NAME` prints the lines to add), or listen on 127.0.0.1.",
    ))
}

/// Parses the address to listen on.
pub fn listen_address(host: &str) -> Option<IpAddr> {
    if host == "localhost" {
        return Some(IpAddr::from([127, 0, 0, 1]));
    }
    host.trim_matches(['[', ']']).parse().ok()
}

/// Returns whether a name is reserved, so that no server may use it.
pub fn is_reserved_name(name: &str) -> bool {
    let toolboxes = crate::settings::model::toolbox_switches::Toolboxes::default().switches();
    toolboxes.iter().any(|(toolbox, _)| toolbox == name) || RESERVED_NAMES.contains(&name)
}

struct Checks<'a> {
    settings: &'a Settings,
    layers: &'a Layers,
    problems: Vec<SettingsProblem>,
}

impl Checks<'_> {
    fn add_problem(&mut self, path: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) {
        let path = path.into();
        self.problems.push(SettingsProblem::new(self.layers.origin(&path), path, what, remedy));
    }

    /// Checks that a setting is an HTTP URL.
    fn check_url(&mut self, path: &str, text: &str) {
        let fits =
            Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        if !fits {
            let shown = text.split('?').next().unwrap_or_default();
            self.add_problem(path, format!("`{shown}` is not a URL."), "Use a URL with http:// or https://.");
        }
    }

    /// Checks patterns of tool names.
    fn check_patterns(&mut self, path: String, patterns: &[String]) {
        let settings = ProfileSettings { tools: patterns.to_vec(), ..ProfileSettings::default() };
        if let Err(error) = Profile::new("", &settings) {
            self.add_problem(path, format!("invalid pattern: {error}."), "Fix the pattern.");
        }
    }

    fn check_paths(&mut self) {
        let workspace = self.settings.workspace.as_deref();
        if let Some(folder) = workspace.filter(|folder| !folder.is_dir()) {
            let what = format!("directory not found: {}.", folder.display());
            self.add_problem("workspace", what, "Create it or use another one.");
        }
    }

    fn check_listen(&mut self) {
        let settings = self.settings;
        for (path, host) in [("listen.host", &settings.listen.host), ("admin.host", &settings.admin.host)] {
            if listen_address(host).is_none() {
                self.add_problem(
                    path,
                    format!("`{host}` is not an IP address."),
                    "Use an IP address or localhost.",
                );
            }
        }
    }

    fn check_minimums(&mut self) {
        let settings = self.settings;
        for (path, number, least) in [
            ("calls.timeout_seconds", settings.calls.timeout_seconds, 1),
            ("results.inline_bytes", settings.results.inline_bytes as u64, 1_000),
            ("results.read_bytes", settings.results.read_bytes as u64, 1_000),
            ("results.max_bytes", settings.results.max_bytes as u64, 1_000),
            ("http.max_body_bytes", settings.http.max_body_bytes as u64, 1_024),
            ("http.session_idle_seconds", settings.http.session_idle_seconds, 1),
            ("http.max_sessions", settings.http.max_sessions as u64, 1),
            ("shell.max_timeout_seconds", settings.shell.max_timeout_seconds, 1),
            ("audit.max_records", settings.audit.max_records.unwrap_or(u64::MAX), 1_000),
            ("audit.max_days", settings.audit.max_days.unwrap_or(u64::MAX), 1),
        ] {
            if number < least {
                self.add_problem(
                    path,
                    format!("`{number}` is too small."),
                    format!("The minimum is {least}."),
                );
            }
        }
    }

    /// A single word must be a level: `Targets` would treat it as a module name and silence everything else.
    fn check_log_level(&mut self) {
        let level = &self.settings.telemetry.log_level;
        let known = |word: &str| ["off", "error", "warn", "info", "debug", "trace"].contains(&word.trim());
        let strange = level.split(',').any(|part| !part.contains('=') && !known(part));
        if strange || level.parse::<Targets>().is_err() {
            let remedy = "Use error, warn, info, debug or trace.";
            self.add_problem("telemetry.log_level", format!("`{level}` is not a log level."), remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::model::section_models::Listen;
    use octo_web::TokenSettings;

    #[test]
    fn only_loopback_goes_without_tokens() {
        let token = TokenSettings {
            name: "a".into(),
            sha256: "0".repeat(64),
            tenant: "t".into(),
            scopes: vec![],
            expires: None,
        };
        for (host, tokens, refused) in [
            ("127.0.0.1", 0, false),
            ("localhost", 0, false),
            ("::1", 0, false),
            ("[::1]", 0, false),
            ("127.8.8.8", 0, false),
            ("0.0.0.0", 0, true),
            ("::", 0, true),
            ("192.168.1.2", 0, true),
            ("0.0.0.0", 1, false),
        ] {
            let mut settings =
                Settings { listen: Listen { host: host.into(), port: 0 }, ..Settings::default() };
            settings.auth.tokens = vec![token.clone(); tokens];
            assert_eq!(
                unauthenticated_binding(&settings, &Layers::default()).is_some(),
                refused,
                "{host} {tokens}"
            );
        }
    }
}
