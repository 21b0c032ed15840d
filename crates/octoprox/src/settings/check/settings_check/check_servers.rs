//! Checks of upstream servers.

use crate::packages::{PackageId, is_digest};
use crate::settings::check::settings_check::{Checks, is_reserved_name};
use crate::settings::model::server_auth::{AuthKind, ServerAuth};
use crate::settings::model::server_model::{Kind, Server};
use octo_grants::net::HostList;
use octo_hub::trust::DeclaredEffects;
use octo_model::normalized_name;
use octo_oauth::RESERVED_AUTHORIZE_PARAMS;
use std::collections::HashMap;

/// Maximum length of a server name, to leave room for tool names.
pub const MAX_SERVER_NAME_LEN: usize = 20;

impl Checks<'_> {
    pub fn check_servers(&mut self) {
        let settings = self.settings;
        let mut known: HashMap<String, &String> = HashMap::new();
        for (name, server) in &settings.servers {
            let path = format!("servers.{name}");
            self.check_name(&path, name);
            if let Some(other) = known.insert(normalized_name(name), name) {
                let what = format!("some clients cannot distinguish this name from `{other}`.");
                let remedy = "Use a name that differs in more than case, `-` and `_`.";
                self.add_problem(&path, what, remedy);
            }
            self.check_transport(&path, server);
            self.check_sandbox(&path, server);
            if let Some(auth) = &server.auth {
                self.check_auth(&format!("{path}.auth"), server, auth);
            }
            if let Some(effects) = &server.effects
                && let Err(error) = DeclaredEffects::new(effects)
            {
                self.add_problem(
                    format!("{path}.effects"),
                    format!("invalid pattern: {error}."),
                    "Fix the pattern.",
                );
            }
            if server.timeout_seconds == 0 {
                self.add_problem(format!("{path}.timeout_seconds"), "must not be 0.", "Use at least 1.");
            }
        }
    }

    fn check_name(&mut self, path: &str, name: &str) {
        if !octo_model::is_valid_name(name) || name.len() > MAX_SERVER_NAME_LEN || name.contains("__") {
            let remedy = "Use at most 20 letters, digits, `_` and `-`, without `__`.";
            self.add_problem(path, "invalid name.", remedy);
        }
        if is_reserved_name(name) {
            self.add_problem(path, "this name is used by a toolbox.", "Use another name.");
        }
    }

    /// Checks that there is exactly one of program, URL and document, and that `type` agrees.
    fn check_transport(&mut self, path: &str, server: &Server) {
        if let Some(package) = &server.package {
            return self.check_package(path, server, package);
        }
        match (&server.command, &server.url, &server.document) {
            (None, _, Some(document)) => self.check_document(path, server, document),
            (Some(_), _, Some(_)) => {
                self.add_problem(path, "both `command` and `document` are set.", "Remove one of them.")
            }
            (None, None, None) if server.kind == Some(Kind::Openapi) => self.add_problem(
                path,
                "`document` is missing.",
                "Set it to the URL or path of the OpenAPI document.",
            ),
            (None, None, None) => {
                self.add_problem(path, "neither `command` nor `url` is set.", "Set one of them.")
            }
            (Some(_), Some(_), None) => {
                self.add_problem(path, "both `command` and `url` are set.", "Remove one of them.")
            }
            (Some(command), None, None) => {
                if command.trim().is_empty() {
                    self.add_problem(format!("{path}.command"), "must not be empty.", "Set it to a program.");
                }
                self.check_kind(path, server, Kind::Stdio, "a `command`");
            }
            (None, Some(url), None) => {
                if server.enabled {
                    self.check_url(&format!("{path}.url"), url);
                }
                if server.kind != Some(Kind::Sse) {
                    self.check_kind(path, server, Kind::Http, "a `url`");
                }
            }
        }
    }

    fn check_package(&mut self, path: &str, server: &Server, package: &str) {
        if server.url.is_some() || server.document.is_some() {
            self.add_problem(
                path,
                "`package` cannot be combined with `url` or `document`.",
                "Remove one of them.",
            );
        }
        if let Err(error) = PackageId::parse(package) {
            self.add_problem(
                format!("{path}.package"),
                error,
                "Write it as `octoprox add` does: npm:NAME@1.2.3.",
            );
        }
        if server.command.as_ref().is_some_and(|command| command.contains('/')) {
            let remedy = "Write the name of a program of the package.";
            self.add_problem(format!("{path}.command"), "a path, although `package` is set.", remedy);
        }
        if server.digest.as_ref().is_some_and(|digest| !is_digest(digest)) {
            self.add_problem(
                format!("{path}.digest"),
                "not a digest.",
                "Remove it, or copy it from servers.lock.",
            );
        }
        self.check_kind(path, server, Kind::Stdio, "a `package`");
    }

    fn check_sandbox(&mut self, path: &str, server: &Server) {
        let Some(sandbox) = &server.sandbox else { return };
        if sandbox.network && !sandbox.hosts.is_empty() {
            self.add_problem(
                format!("{path}.sandbox"),
                "both `network` and `hosts` are set.",
                "Remove one of them.",
            );
        }
        if let Err(error) = HostList::parse("sandbox.hosts", &sandbox.hosts) {
            self.add_problem(format!("{path}.sandbox.hosts"), error.message, error.hint.unwrap_or_default());
        }
    }

    fn check_document(&mut self, path: &str, server: &Server, document: &str) {
        self.check_kind(path, server, Kind::Openapi, "a `document`");
        if !server.enabled {
            return;
        }
        if document.contains("://") {
            self.check_url(&format!("{path}.document"), document);
        } else if !std::path::Path::new(document).is_file() {
            let what = format!("file not found: {document}.");
            self.add_problem(
                format!("{path}.document"),
                what,
                "Use the path of a file or a URL with https://.",
            );
        }
        if let Some(url) = &server.url {
            self.check_url(&format!("{path}.url"), url);
        }
    }

    fn check_kind(&mut self, path: &str, server: &Server, kind: Kind, has: &str) {
        if server.kind.is_some_and(|said| said != kind) {
            self.add_problem(format!("{path}.type"), format!("conflicts with {has}."), "Remove it.");
        }
    }

    fn check_auth(&mut self, path: &str, server: &Server, auth: &ServerAuth) {
        if auth.is_login() && server.is_program() {
            let remedy =
                "Remove it: the program logs in by itself. For a key use `type: api-key` with `env`.";
            self.add_problem(
                format!("{path}.type"),
                "a server with `command` does not support logins.",
                remedy,
            );
        }
        if auth.header.is_some() && auth.query.is_some() {
            self.add_problem(path, "both `header` and `query` are set.", "Remove one of them.");
        }
        if auth.kind == AuthKind::ApiKey && auth.env.is_none() && server.is_program() {
            self.add_problem(path, "`env` is missing.", "Set it to the variable that contains the key.");
        }
        for name in auth.authorize_params.keys() {
            let path = format!("{path}.authorize_params.{name}");
            if RESERVED_AUTHORIZE_PARAMS.contains(&name.as_str()) {
                self.add_problem(path, "the hub sets this parameter itself.", "Remove it.");
            } else if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                self.add_problem(path, "not a valid parameter name.", "Use letters, digits and `_`.");
            }
        }
        if !auth.authorize_params.is_empty() && auth.kind != AuthKind::Oauth {
            let remedy = "Remove it, or use `type: oauth2-pkce`.";
            self.add_problem(
                format!("{path}.authorize_params"),
                "only supported for browser logins.",
                remedy,
            );
        }
        let odd = auth.env.as_deref().filter(|name| !is_env_name(name));
        if odd.is_some() {
            let remedy = "Write the name of the variable, not the key.";
            self.add_problem(format!("{path}.env"), "not a valid variable name.", remedy);
        }
    }
}

/// Returns whether a shell would accept this as a variable name. A pasted API key is unlikely to pass.
fn is_env_name(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    first && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
