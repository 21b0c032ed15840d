//! Replacement of `${secret:NAME}` in settings by stored secrets.

use crate::app_error::AppError;
use crate::settings::Environment;
use crate::settings::check::settings_problem::SettingsProblem;
use crate::settings::load::interpolation::{self, Interpolation, server_of};
use crate::settings::load::secret_store::SecretStore;
use crate::settings::load::settings_layers::Layers;
use crate::settings::load::settings_sources::{Flags, SettingsSources};
use crate::settings::load::{env_variables, resolve_paths};
use crate::settings::model::section_models::Logins;
use octo_model::Secret;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Prefix of stored secrets inside `${…}`.
pub const SECRET_PREFIX: &str = "secret:";
/// Sections that determine where and how secrets are stored.
const STORE_SETTINGS: [&str; 2] = ["logins", "state_dir"];

/// Part of a string.
#[derive(Debug, PartialEq, Eq)]
pub enum TextPart {
    Text(String),
    Secret { name: String, default: Option<String> },
}

impl TextPart {
    /// Its text; empty for a secret.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Secret { .. } => "",
        }
    }
}

/// A string that contains stored secrets.
pub struct SecretText {
    pub path: String,
    pub original: String,
    pub parts: Vec<TextPart>,
}

/// Replaces the secrets. A server that needs one that is not stored is recorded as missing it.
pub fn resolve_secrets(filled: &mut Interpolation, layers: &mut Layers, world: &Environment) {
    let texts = std::mem::take(&mut filled.secret_texts);
    let (misplaced, texts): (Vec<_>, Vec<_>) =
        texts.into_iter().partition(|text| is_store_setting(&text.path));
    for text in misplaced {
        let what =
            "stored secrets cannot be used here, because this setting determines where they are stored.";
        filled.problems.push(problem(layers, &text.path, what, "Use an environment variable."));
    }
    if texts.is_empty() {
        return;
    }
    let stored = match stored_secrets(&texts, layers, world) {
        Ok(stored) => stored,
        Err(error) => {
            let why = format!("the stored secrets cannot be read: {}", error.text());
            texts
                .iter()
                .filter_map(|text| server_of(&text.path))
                .for_each(|server| filled.missing.block(server, &why));
            let others = texts.iter().filter(|text| server_of(&text.path).is_none());
            let others = others.map(|text| problem(layers, &text.path, &why, "Use an environment variable."));
            return filled.problems.extend(others);
        }
    };
    let mut resolved = BTreeMap::new();
    for text in &texts {
        match join_parts(&text.parts, &stored) {
            Ok(whole) => drop(resolved.insert(text.path.as_str(), (text.original.as_str(), whole))),
            Err(name) => match server_of(&text.path) {
                Some(server) => filled.missing.add_secret(server, name),
                None => {
                    let what = format!("the secret {name} is not stored.");
                    let remedy = format!("Store it with `octoprox secret set {name}`.");
                    filled.problems.push(problem(layers, &text.path, &what, &remedy));
                }
            },
        }
    }
    filled.secrets.extend(stored.into_values().map(|secret| secret.expose().to_owned()));
    layers.for_each_text(&mut |path, text| {
        if let Some((original, whole)) = resolved.get(path)
            && text == original
        {
            text.clone_from(whole);
        }
    });
}

fn is_store_setting(path: &str) -> bool {
    path.split(['.', '[']).next().is_some_and(|section| STORE_SETTINGS.contains(&section))
}

fn problem(layers: &Layers, path: &str, what: &str, remedy: &str) -> SettingsProblem {
    SettingsProblem::new(layers.origin(path), path, what, remedy)
}

fn stored_secrets(
    texts: &[SecretText],
    layers: &Layers,
    world: &Environment,
) -> Result<BTreeMap<String, Secret>, AppError> {
    let names: BTreeSet<&str> = texts.iter().flat_map(|text| &text.parts).filter_map(secret_name).collect();
    store_of(layers, world)?.get_all(names)
}

/// The stored secrets of settings, which may be invalid otherwise or need a secret that is not stored.
pub struct SecretSettings {
    pub store: SecretStore,
    /// What uses each secret: the names of servers, and the paths of other settings.
    pub uses: BTreeMap<String, BTreeSet<String>>,
    /// Messages about project files that are ignored until they are approved.
    pub unapproved: Vec<String>,
}

impl SecretSettings {
    pub fn read(world: &Environment, flags: &Flags) -> Result<Self, AppError> {
        let SettingsSources { mut layers, unapproved, .. } = SettingsSources::read(world, flags)?;
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        // Disabled servers use theirs, too.
        layers.for_each_text(&mut |path, text| {
            let references = text.split("${secret:").skip(1).filter_map(|rest| rest.split_once('}'));
            for (name, _) in references {
                let name = name.split_once(":-").map_or(name, |(name, _)| name);
                let user = server_of(path).unwrap_or(path);
                uses.entry(name.to_owned()).or_default().insert(user.to_owned());
            }
        });
        interpolation::interpolate(&mut layers, world);
        Ok(Self { store: store_of(&layers, world)?, uses, unapproved })
    }
}

/// Opens the store of default settings.
pub fn open_default_secret_store(world: &Environment) -> Result<SecretStore, AppError> {
    store_of(&Layers::default(), world)
}

/// Opens the store that these settings name.
fn store_of(layers: &Layers, world: &Environment) -> Result<SecretStore, AppError> {
    let mut layers = layers.clone();
    // Invalid settings are reported when all of them are checked.
    env_variables::merge_env(&mut layers, world);
    resolve_paths::resolve_paths(&mut layers, world);
    let logins: Logins = read_setting(&layers, "logins").unwrap_or_default();
    let state_dir: Option<PathBuf> = read_setting(&layers, "state_dir");
    SecretStore::open(&logins, state_dir.as_ref(), world)
}

fn read_setting<T: DeserializeOwned>(layers: &Layers, path: &str) -> Option<T> {
    layers.get(path).cloned().and_then(|value: Value| serde_json::from_value(value).ok())
}

fn secret_name(part: &TextPart) -> Option<&str> {
    match part {
        TextPart::Text(_) => None,
        TextPart::Secret { name, .. } => Some(name),
    }
}

/// Returns the whole string, or the name of a secret that is not stored.
fn join_parts<'a>(parts: &'a [TextPart], stored: &BTreeMap<String, Secret>) -> Result<String, &'a str> {
    let text = |part: &'a TextPart| match part {
        TextPart::Text(text) => Ok(text.clone()),
        TextPart::Secret { name, default } => {
            let stored = stored.get(name).map(|secret| secret.expose().to_owned());
            stored.or_else(|| default.clone()).ok_or(name.as_str())
        }
    };
    parts.iter().map(text).collect()
}
