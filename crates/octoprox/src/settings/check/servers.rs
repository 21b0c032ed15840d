//! Checks of the servers behind the hub.

use super::{Checks, OWN};
use crate::settings::server::{Kind, Server};

/// Longer names would leave no room for those of tools.
const LONGEST: usize = 20;

impl Checks<'_> {
    pub fn servers(&mut self) {
        let settings = self.settings;
        for (name, server) in &settings.servers {
            let path = format!("servers.{name}");
            self.name(&path, name);
            self.reached(&path, server);
            if server.timeout_seconds == 0 {
                self.wrong(
                    format!("{path}.timeout_seconds"),
                    "it leaves no time at all.",
                    "Write at least 1.",
                );
            }
        }
    }

    fn name(&mut self, path: &str, name: &str) {
        if !octo_model::is_plain(name) || name.len() > LONGEST || name.contains("__") {
            let remedy = "Use letters, digits, `_` and `-`, at most 20 of them, without `__`.";
            self.wrong(path, "the name cannot be used.", remedy);
        }
        let taken = self.settings.toolboxes.switches().iter().any(|(toolbox, _)| toolbox == name);
        if taken || OWN.contains(&name) {
            self.wrong(path, "a toolbox has this name.", "Choose another.");
        }
    }

    /// By a program or by an address, and its kind must not say otherwise.
    fn reached(&mut self, path: &str, server: &Server) {
        match (&server.command, &server.url) {
            (None, None) => {
                self.wrong(path, "it has neither a `command` nor a `url`.", "Give it one of them.")
            }
            (Some(_), Some(_)) => {
                self.wrong(path, "it has both a `command` and a `url`.", "Keep one of them.")
            }
            (Some(command), None) => {
                if command.trim().is_empty() {
                    self.wrong(format!("{path}.command"), "it is empty.", "Name a program.");
                }
                self.not(path, server, Kind::Http, "a `command`");
            }
            (None, Some(url)) => {
                if server.enabled {
                    self.address(&format!("{path}.url"), url);
                }
                self.not(path, server, Kind::Stdio, "a `url`");
            }
        }
    }

    fn not(&mut self, path: &str, server: &Server, kind: Kind, has: &str) {
        if server.kind == Some(kind) {
            self.wrong(format!("{path}.type"), format!("it does not go with {has}."), "Leave it out.");
        }
    }
}
