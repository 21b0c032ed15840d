//! Servers that need an unset variable or a secret that is not stored. They are disabled; everything else works.

use crate::settings::load::settings_layers::Layers;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Unset variables and missing secrets, by the server that needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnsetVariables(BTreeMap<String, MissingValues>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct MissingValues {
    variables: BTreeSet<String>,
    secrets: BTreeSet<String>,
    /// Why secrets cannot be read.
    blocked: Option<String>,
}

impl UnsetVariables {
    pub fn add(&mut self, server: &str, variable: &str) {
        self.0.entry(server.to_owned()).or_default().variables.insert(variable.to_owned());
    }

    pub fn add_secret(&mut self, server: &str, secret: &str) {
        self.0.entry(server.to_owned()).or_default().secrets.insert(secret.to_owned());
    }

    /// Disables a server whose secrets cannot be read.
    pub fn block(&mut self, server: &str, why: &str) {
        self.0.entry(server.to_owned()).or_default().blocked = Some(why.to_owned());
    }

    /// Returns what to do before a server can be used; `None` if it lacks nothing.
    pub fn remedy(&self, server: &str) -> Option<String> {
        let MissingValues { variables, secrets, blocked } = self.0.get(server)?;
        let set =
            (!variables.is_empty()).then(|| format!("set {} where octoprox is started", join(variables)));
        let stores = secrets.iter().map(|secret| format!("run `octoprox secret set {secret}`"));
        Some(set.into_iter().chain(stores).chain(blocked.clone()).collect::<Vec<_>>().join("; "))
    }

    /// Disables those servers and returns a note for each.
    pub fn disable_servers(&self, layers: &mut Layers) -> Vec<String> {
        let mut notes = Vec::new();
        for (server, MissingValues { variables, secrets, blocked }) in &self.0 {
            let setting = format!("servers.{server}.enabled");
            let origin = layers.origin(&setting);
            layers.set(&setting, Value::Bool(false), &origin);
            notes.extend(blocked.iter().map(|why| format!("the server {server} is disabled: {why}")));
            for (lacks, until) in [
                (variables, "these variables are set"),
                (secrets, "these secrets are stored with `octoprox secret set`"),
            ] {
                if !lacks.is_empty() {
                    notes.push(format!("the server {server} is disabled until {until}: {}", join(lacks)));
                }
            }
        }
        notes
    }
}

fn join(names: &BTreeSet<String>) -> String {
    names.iter().cloned().collect::<Vec<_>>().join(", ")
}
