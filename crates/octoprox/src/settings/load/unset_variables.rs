//! Servers that lack a variable: they are left out, and everything else works.

use crate::settings::load::settings_layers::Layers;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The variables that are not set, by the server that needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnsetVariables(BTreeMap<String, BTreeSet<String>>);

impl UnsetVariables {
    pub fn add(&mut self, server: &str, variable: &str) {
        self.0.entry(server.to_owned()).or_default().insert(variable.to_owned());
    }

    pub fn servers(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.0
    }

    /// What one server lacks, as words; nothing when it lacks nothing.
    pub fn for_server(&self, server: &str) -> Option<String> {
        Some(self.0.get(server)?.iter().cloned().collect::<Vec<_>>().join(", "))
    }

    /// Switches those servers off and says so.
    pub fn disable_servers(&self, layers: &mut Layers) -> Vec<String> {
        let mut notes = Vec::new();
        for server in self.0.keys() {
            let setting = format!("servers.{server}.enabled");
            let origin = layers.origin(&setting);
            layers.set(&setting, Value::Bool(false), &origin);
            let lacks = self.for_server(server).unwrap_or_default();
            notes.push(format!("the server {server} is left out until this is set: {lacks}"));
        }
        notes
    }
}
