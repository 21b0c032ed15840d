//! Checks of profiles, rules, tokens and URLs.

use crate::settings::check::settings_check::{Checks, RESERVED_NAMES};
use octo_hub::{PolicyRules, PolicySettings};
use octo_web::Tokens;
use std::collections::BTreeSet;
use url::Url;

impl Checks<'_> {
    pub fn check_profiles(&mut self) {
        let settings = self.settings;
        let toolboxes = settings.toolboxes.switches();
        let known: BTreeSet<&str> = toolboxes
            .iter()
            .map(|(name, _)| name.as_str())
            .chain(settings.servers.keys().map(String::as_str))
            .chain(RESERVED_NAMES)
            .collect();
        for (name, profile) in &settings.profiles {
            if !octo_model::is_valid_name(name) {
                let remedy = "Use letters, digits, `_` and `-`.";
                self.add_problem(format!("profiles.{name}"), "invalid name.", remedy);
            }
            for server in profile.servers.iter().filter(|server| !known.contains(server.as_str())) {
                let what = format!("unknown server or toolbox `{server}`.");
                self.add_problem(
                    format!("profiles.{name}.servers"),
                    what,
                    "Use a name from `servers` or `toolboxes`.",
                );
            }
            self.check_patterns(format!("profiles.{name}.tools"), &profile.tools);
            self.check_patterns(format!("profiles.{name}.listed"), &profile.listed);
            for listed in
                profile.overrides.keys().filter(|listed| octo_model::listed_name(listed) != **listed)
            {
                let remedy = "Use up to 46 letters, digits, `_` and `-`.";
                self.add_problem(format!("profiles.{name}.as.{listed}"), "invalid name.", remedy);
            }
        }
    }

    pub fn check_rules(&mut self) {
        let settings = self.settings;
        self.check_patterns("surface.listed".to_owned(), &settings.surface.listed);
        for (at, rule) in settings.policy.rules.iter().enumerate() {
            let alone = PolicySettings { rules: vec![rule.clone()], ..PolicySettings::default() };
            if let Err(error) = PolicyRules::new(&alone) {
                let what = format!("invalid pattern: {error}.");
                self.add_problem(format!("policy.rules[{at}]"), what, "Fix the pattern.");
            }
        }
        for (at, rule) in settings.limits.iter().enumerate() {
            self.check_patterns(format!("limits[{at}].tools"), &rule.tools);
        }
        for (at, rule) in settings.cache.iter().enumerate() {
            self.check_patterns(format!("cache[{at}].tools"), &rule.tools);
        }
    }

    pub fn check_tokens(&mut self) {
        let tokens = &self.settings.auth.tokens;
        let remedy = "Create one with `octoprox token new NAME`.";
        let before = self.problems.len();
        let mut names = BTreeSet::new();
        for (at, token) in tokens.iter().enumerate() {
            let path = format!("auth.tokens[{at}]");
            if let Err(fault) = Tokens::new(std::slice::from_ref(token)) {
                self.add_problem(path, fault.to_string(), remedy);
            } else if !names.insert(token.name.as_str()) {
                self.add_problem(
                    format!("{path}.name"),
                    "duplicate name.",
                    "Use a unique name for each token.",
                );
            }
        }
        if let Err(fault) = Tokens::new(tokens)
            && self.problems.len() == before
        {
            self.add_problem("auth.tokens", fault.to_string(), remedy);
        }
    }

    pub fn check_urls(&mut self) {
        let settings = self.settings;
        for (path, address) in [
            ("telemetry.otlp_endpoint", &settings.telemetry.otlp_endpoint),
            ("github.url", &settings.github.url),
            ("gitlab.openapi_url", &settings.gitlab.openapi_url),
            ("gitlab.url", &settings.gitlab.url),
            ("llm.url", &settings.llm.url),
            ("search.searxng_url", &settings.search.searxng_url),
            ("logins.callback_url", &settings.logins.callback_url),
        ] {
            if let Some(address) = address {
                self.check_url(path, address);
            }
        }
        if settings.net.requests_per_second.is_some_and(|rate| !(0.001..=1_000.0).contains(&rate)) {
            let remedy = "Use a number between 0.001 and 1000, or remove it.";
            self.add_problem("net.requests_per_second", "out of range.", remedy);
        }
        let plain =
            |text: &String| text.chars().all(|sign| sign.is_ascii_graphic() && !"()<>\"".contains(sign));
        if settings.net.contact.as_ref().is_some_and(|contact| contact.is_empty() || !plain(contact)) {
            let remedy = "Write it like https://example.com/bot or mailto:ops@example.com.";
            self.add_problem("net.contact", "not a URL that is valid in a header.", remedy);
        }
        for (at, host) in settings.http.allowed_hosts.iter().enumerate() {
            if host.is_empty() || host.contains(['/', '*', ' ']) {
                let what = format!("`{host}` is not a host name.");
                self.add_problem(
                    format!("http.allowed_hosts[{at}]"),
                    what,
                    "Write it like hub.example or hub.example:7000.",
                );
            }
        }
        for (at, origin) in settings.http.allowed_origins.iter().enumerate() {
            let bare = |url: Url| url.has_host() && url.path() == "/" && !origin.ends_with('/');
            if !Url::parse(origin).is_ok_and(bare) {
                let what = format!("`{origin}` is not an origin.");
                self.add_problem(
                    format!("http.allowed_origins[{at}]"),
                    what,
                    "Write it like https://app.example.",
                );
            }
        }
        self.check_store();
        self.check_fleet();
        let database = &settings.database;
        for (path, addresses) in [("connections", &database.connections), ("readers", &database.readers)] {
            for (name, _) in addresses.iter().filter(|(_, address)| Url::parse(address.expose()).is_err()) {
                let remedy = "Write it like postgresql://user:password@host:5432/name.";
                self.add_problem(format!("database.{path}.{name}"), "not a valid URL.", remedy);
            }
        }
        let named = database.readers.keys().map(|name| ("readers", name));
        for (path, name) in named.chain(database.superusers.iter().map(|name| ("superusers", name))) {
            if !database.connections.contains_key(name) {
                let what = format!("unknown connection `{name}`.");
                self.add_problem(format!("database.{path}"), what, "Use a name from `database.connections`.");
            }
        }
    }
}
