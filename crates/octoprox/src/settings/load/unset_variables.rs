//! Servers that need an unset variable. They are disabled; everything else works.

use crate::settings::load::settings_layers::Layers;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Unset variables, by the server that needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnsetVariables(BTreeMap<String, BTreeSet<String>>);

impl UnsetVariables {
    pub fn add(&mut self, server: &str, variable: &str) {
        self.0.entry(server.to_owned()).or_default().insert(variable.to_owned());
    }

    pub fn servers(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.0
    }

    /// Returns the variables that one server needs, comma-separated.
    pub fn for_server(&self, server: &str) -> Option<String> {
        Some(self.0.get(server)?.iter().cloned().collect::<Vec<_>>().join(", "))
    }

    /// Disables those servers and returns a note for each.
    pub fn disable_servers(&self, layers: &mut Layers) -> Vec<String> {
        let mut notes = Vec::new();
        for server in self.0.keys() {
            let setting = format!("servers.{server}.enabled");
            let origin = layers.origin(&setting);
            layers.set(&setting, Value::Bool(false), &origin);
            let lacks = self.for_server(server).unwrap_or_default();
            notes.push(format!("the server {server} is disabled until these variables are set: {lacks}"));
        }
        notes
    }
}
