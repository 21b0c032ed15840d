//! Secrets of imported servers: stored, or replaced by environment variables.

use crate::app_error::AppError;
use crate::clients::SecretExtractor;
use crate::settings::{Environment, SecretStore};
use octo_model::Secret;
use octo_ports::credentials::MAX_SECRET_BYTES;
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

    /// Stores secrets, and the values of these variables.
    pub fn storing(store: SecretStore, variables: BTreeMap<String, String>) -> Result<Self, AppError> {
        let before = stored_values(&store)?;
        let extractor = SecretExtractor::storing(before.clone(), variables);
        Ok(Self { extractor, store: Some(store), before })
    }

    /// Stores the secrets of these names that are new. `stored` is called after each.
    pub fn store(
        &self,
        names: &BTreeSet<String>,
        mut stored: impl FnMut(&str, &str) -> Result<(), AppError>,
    ) -> Result<(), AppError> {
        let Some(store) = &self.store else { return Ok(()) };
        for name in names.iter().filter(|name| !self.before.contains_key(*name)) {
            if let Some(value) = self.extractor.values().get(name) {
                store.set(name, Secret::new(value.as_str()))?;
                stored(name, value)?;
            }
        }
        Ok(())
    }

    /// Whether all of these secrets can be stored.
    pub fn fit(&self, names: &BTreeSet<String>) -> bool {
        let values = names.iter().filter_map(|name| self.extractor.values().get(name));
        values.map(String::len).all(|len| len <= MAX_SECRET_BYTES)
    }

    /// The variable among these whose value in the environment is not the one of the client's file.
    pub fn mismatch(&self, variables: &BTreeSet<String>, world: &Environment) -> Option<String> {
        let differs = |name: &&String| {
            let (found, set) = (self.extractor.values().get(*name), world.variable(name));
            found.zip(set).is_some_and(|(found, set)| found != set)
        };
        variables.iter().find(differs).cloned()
    }
}

/// Returns all stored secrets.
pub fn stored_values(store: &SecretStore) -> Result<BTreeMap<String, String>, AppError> {
    let names = store.names()?;
    let stored = store.get_all(names.iter().map(String::as_str))?;
    Ok(stored.into_iter().map(|(name, secret)| (name, secret.expose().to_owned())).collect())
}
