//! Checks of the servers behind the hub.

use crate::settings::check::settings_check::{Checks, is_reserved_name};
use crate::settings::model::server_auth::{AuthKind, ServerAuth};
use crate::settings::model::server_model::{Kind, Server};
use octo_model::normalized_name;
use octo_oauth::RESERVED_AUTHORIZE_PARAMS;
use std::collections::HashMap;

/// Longer names would leave no room for those of tools.
pub const MAX_SERVER_NAME_LEN: usize = 20;

impl Checks<'_> {
    pub fn check_servers(&mut self) {
        let settings = self.settings;
        let mut known: HashMap<String, &String> = HashMap::new();
        for (name, server) in &settings.servers {
            let path = format!("servers.{name}");
            self.check_name(&path, name);
            if let Some(other) = known.insert(normalized_name(name), name) {
                let what = format!("some clients cannot tell its name from `{other}`.");
                let remedy = "Choose one that differs in more than capital letters, `-` and `_`.";
                self.add_problem(&path, what, remedy);
            }
            self.check_transport(&path, server);
            if let Some(auth) = &server.auth {
                self.check_auth(&format!("{path}.auth"), server, auth);
            }
            if server.timeout_seconds == 0 {
                self.add_problem(
                    format!("{path}.timeout_seconds"),
                    "it leaves no time at all.",
                    "Write at least 1.",
                );
            }
        }
    }

    fn check_name(&mut self, path: &str, name: &str) {
        if !octo_model::is_valid_name(name) || name.len() > MAX_SERVER_NAME_LEN || name.contains("__") {
            let remedy = "Use letters, digits, `_` and `-`, at most 20 of them, without `__`.";
            self.add_problem(path, "the name cannot be used.", remedy);
        }
        if is_reserved_name(name) {
            self.add_problem(path, "a toolbox has this name.", "Choose another.");
        }
    }

    /// By a program, by an address or by a document, and its kind must not say otherwise.
    fn check_transport(&mut self, path: &str, server: &Server) {
        match (&server.command, &server.url, &server.document) {
            (None, _, Some(document)) => self.check_document(path, server, document),
            (Some(_), _, Some(_)) => {
                self.add_problem(path, "it has both a `command` and a `document`.", "Keep one of them.")
            }
            (None, None, None) if server.kind == Some(Kind::Openapi) => self.add_problem(
                path,
                "it has no `document`.",
                "Name the OpenAPI document, by address or as a file.",
            ),
            (None, None, None) => {
                self.add_problem(path, "it has neither a `command` nor a `url`.", "Give it one of them.")
            }
            (Some(_), Some(_), None) => {
                self.add_problem(path, "it has both a `command` and a `url`.", "Keep one of them.")
            }
            (Some(command), None, None) => {
                if command.trim().is_empty() {
                    self.add_problem(format!("{path}.command"), "it is empty.", "Name a program.");
                }
                self.check_kind(path, server, Kind::Stdio, "a `command`");
            }
            (None, Some(url), None) => {
                if server.enabled {
                    self.check_url(&format!("{path}.url"), url);
                }
                self.check_kind(path, server, Kind::Http, "a `url`");
            }
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
            let what = format!("there is no file {document}.");
            self.add_problem(format!("{path}.document"), what, "Name a file, or an address with https://.");
        }
        if let Some(url) = &server.url {
            self.check_url(&format!("{path}.url"), url);
        }
    }

    fn check_kind(&mut self, path: &str, server: &Server, kind: Kind, has: &str) {
        if server.kind.is_some_and(|said| said != kind) {
            self.add_problem(format!("{path}.type"), format!("it does not go with {has}."), "Leave it out.");
        }
    }

    fn check_auth(&mut self, path: &str, server: &Server, auth: &ServerAuth) {
        if auth.is_login() && server.command.is_some() {
            let remedy =
                "Leave it out: the program logs in by itself. A key goes as `type: api-key` with `env`.";
            self.add_problem(format!("{path}.type"), "nobody can log in at a program.", remedy);
        }
        if auth.header.is_some() && auth.query.is_some() {
            self.add_problem(path, "it has both a `header` and a `query`.", "Keep one of them.");
        }
        if auth.kind == AuthKind::ApiKey && auth.env.is_none() && server.command.is_some() {
            self.add_problem(
                path,
                "nothing says where the key is.",
                "Name the variable that holds it as `env`.",
            );
        }
        for name in auth.authorize_params.keys() {
            let path = format!("{path}.authorize_params.{name}");
            if RESERVED_AUTHORIZE_PARAMS.contains(&name.as_str()) {
                self.add_problem(path, "the hub sets this parameter itself.", "Leave it out.");
            } else if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                self.add_problem(
                    path,
                    "this is not the name of a parameter.",
                    "Use letters, digits and `_`.",
                );
            }
        }
        if !auth.authorize_params.is_empty() && auth.kind != AuthKind::Oauth {
            let remedy = "Leave it out, or use `type: oauth2-pkce`.";
            self.add_problem(
                format!("{path}.authorize_params"),
                "only logins with a browser send these.",
                remedy,
            );
        }
        let odd = auth.env.as_deref().filter(|name| !is_env_name(name));
        if odd.is_some() {
            let remedy = "Write the variable's name, not the key itself.";
            self.add_problem(format!("{path}.env"), "this is not the name of a variable.", remedy);
        }
    }
}

/// What a shell takes for the name of a variable. A key that was pasted here is most likely none.
fn is_env_name(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    first && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
