//! Describes an MCP bundle like a server of the catalogue.

use crate::packages::{BundleManifest, BundleVariable};
use octo_catalogue::{CatalogueEntry, Publisher, PublisherEvidence, Variable, own_variable};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What the manifest says. Tools are left out, because it does not say what they do.
pub fn bundle_entry(server: &str, manifest: &BundleManifest) -> CatalogueEntry {
    let variable = |variable: BundleVariable| Variable {
        name: if variable.required { own_variable(server, &variable.name) } else { variable.name },
        description: variable.description,
        secret: variable.secret,
        required: variable.required,
    };
    CatalogueEntry {
        title: manifest.display_name.clone().unwrap_or_else(|| manifest.name.clone()),
        description: manifest.description.clone(),
        publisher: Publisher {
            name: manifest.author.name.clone(),
            url: manifest.author.url.clone().unwrap_or_default(),
            verified_by: PublisherEvidence::None,
        },
        categories: Vec::new(),
        aliases: Vec::new(),
        remote: None,
        package: None,
        variables: manifest.variables().into_iter().map(variable).collect(),
        hosts: Vec::new(),
        access: Vec::new(),
        tools: BTreeMap::new(),
        tools_from: None,
        checked: String::new(),
    }
}

/// Environment of the server: what it does not start without.
pub fn bundle_env(server: &str, manifest: &BundleManifest) -> Map<String, Value> {
    let required = manifest.variables().into_iter().filter(|variable| variable.required);
    required
        .map(|variable| {
            let source = own_variable(server, &variable.name);
            (variable.name, format!("${{{source}}}").into())
        })
        .collect()
}
