//! Secrets of imported servers: stored, or replaced by environment variables.

use crate::app_error::AppError;
use crate::clients::SecretExtractor;
use crate::settings::SecretStore;
use octo_model::Secret;
use std::collections::{BTreeMap, BTreeSet};

/// The extractor of an import, and the store for what it finds.
pub struct ImportSecrets {
    pub extractor: SecretExtractor,
    store: Option<SecretStore>,
    /// Secrets that were stored before.
    before: BTreeMap<String, String>,
}

impl ImportSecrets {
    /// Replaces secrets by environment variables.
    pub fn as_variables() -> Self {
        Self { extractor: SecretExtractor::default(), store: None, before: BTreeMap::new() }
    }

    /// Stores secrets. `values` returns the values of variables to store, given the secrets stored before.
    pub fn storing(
        store: SecretStore,
        values: impl FnOnce(&BTreeMap<String, String>) -> BTreeMap<String, String>,
    ) -> Result<Self, AppError> {
        let before = stored_values(&store)?;
        let extractor = SecretExtractor::storing(before.clone(), values(&before));
        Ok(Self { extractor, store: Some(store), before })
    }

    /// Stores the secrets of these names that are new, and returns their names.
    pub fn store(&self, names: &BTreeSet<String>) -> Result<Vec<String>, AppError> {
        let Some(store) = &self.store else { return Ok(Vec::new()) };
        let mut stored = Vec::new();
        for name in names.iter().filter(|name| !self.before.contains_key(*name)) {
            if let Some(value) = self.extractor.values().get(name) {
                store.set(name, Secret::new(value.as_str()))?;
                stored.push(name.clone());
            }
        }
        Ok(stored)
    }
}

/// Returns all stored secrets.
pub fn stored_values(store: &SecretStore) -> Result<BTreeMap<String, String>, AppError> {
    let names = store.names()?;
    let stored = store.get_all(names.iter().map(String::as_str))?;
    Ok(stored.into_iter().map(|(name, secret)| (name, secret.expose().to_owned())).collect())
}
