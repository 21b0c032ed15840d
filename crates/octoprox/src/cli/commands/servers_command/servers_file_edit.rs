//! Editing of a file that defines servers.

use crate::app_error::AppError;
use crate::cli::file_change::FileChange;
use crate::settings::edit::settings_edit;
use crate::settings::load::settings_format;
use crate::settings::{Environment, Flags, SettingsChoice, SettingsProblems, TrustStore};
use crate::terminal::console;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Header of a new file.
const FILE_HEADER: &str = "# MCP servers behind octoprox, read beside octoprox.yaml. Variables are written ${NAME},\n\
                    # stored secrets ${secret:NAME}.\n\
                    # `octoprox servers list` lists them, `octoprox servers test` tests them.\n";

/// Returns the settings file in use. An unapproved project file is ignored here, too.
fn settings_choice(flags: &Flags, world: &Environment) -> Result<SettingsChoice, AppError> {
    let chosen = SettingsChoice::new(
        world,
        flags.config.as_ref(),
        &TrustStore::open(world).map_err(SettingsProblems::from)?,
    );
    if let Some(ignored) = &chosen.ignored {
        console::print_err(&format!("octoprox: {ignored}"));
    }
    Ok(chosen)
}

/// Existing or new file with servers.
pub struct ServersFileEdit {
    pub path: PathBuf,
    before: Option<String>,
    text: String,
    list: &'static [&'static str],
}

impl ServersFileEdit {
    /// Opens the named file, else servers.yaml beside the settings, else the settings file.
    pub fn for_add(to: Option<&PathBuf>, flags: &Flags, world: &Environment) -> Result<Self, AppError> {
        if let Some(named) = to.or(flags.servers.as_ref()) {
            return Self::open(world.current_dir.join(named));
        }
        let chosen = settings_choice(flags, world)?;
        let list = chosen.servers(world);
        let there = list.clone().filter(|list| list.is_file()).or(chosen.path);
        Self::open_list(there.or(list))
    }

    /// Opens servers.yaml beside the settings, whether it exists or not.
    pub fn beside_settings(flags: &Flags, world: &Environment) -> Result<Self, AppError> {
        let chosen = settings_choice(flags, world)?;
        Self::open_list(chosen.servers(world).or(chosen.path))
    }

    fn open_list(path: Option<PathBuf>) -> Result<Self, AppError> {
        let none = || AppError::invalid("No home directory to write to. Name a file with --to.");
        Self::open(path.ok_or_else(none)?)
    }

    /// Opens a file. A new one starts with a comment.
    pub fn open(path: PathBuf) -> Result<Self, AppError> {
        let before = match settings_format::read_foreign(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(AppError::new(format!("{}: cannot read file: {error}.", path.display())));
            }
        };
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let text =
            before.clone().unwrap_or_else(|| if is_json { String::new() } else { FILE_HEADER.to_owned() });
        let tree = settings_format::parse_as(&path, &text)
            .ok()
            .and_then(|tree| tree.as_object().cloned())
            .unwrap_or_default();
        let list: &[&str] = match () {
            () if tree.contains_key("mcpServers") => &["mcpServers"],
            () if tree.contains_key("servers") || !is_json => &["servers"],
            () => &["mcpServers"],
        };
        Ok(Self { path, before, text, list })
    }

    /// Returns the entry of this name, as written.
    pub fn entry(&self, name: &str) -> Option<Value> {
        self.tree()?.get(*self.list.first()?)?.get(name).cloned()
    }

    /// Names of all entries.
    pub fn names(&self) -> Vec<String> {
        let list = self.tree().and_then(|tree| tree.get(*self.list.first()?)?.as_object().cloned());
        list.unwrap_or_default().into_iter().map(|(name, _)| name).collect()
    }

    fn tree(&self) -> Option<Map<String, Value>> {
        settings_format::parse_as(&self.path, &self.text).ok()?.as_object().cloned()
    }

    /// Adds an entry, without writing the file.
    pub fn add(&mut self, name: &str, server: &Map<String, Value>) -> Result<(), settings_edit::EditError> {
        self.text = self.edit(name).add(&self.text, server)?;
        Ok(())
    }

    pub fn remove(&mut self, name: &str) -> Result<(), settings_edit::EditError> {
        self.text = self.edit(name).remove(&self.text)?;
        Ok(())
    }

    fn edit<'a>(&'a self, name: &'a str) -> settings_edit::ServerEdit<'a> {
        settings_edit::ServerEdit { path: &self.path, list: self.list, name }
    }

    pub fn into_change(self) -> FileChange {
        // Do not create a file for the header alone.
        let untouched = self.before.is_none() && self.text == FILE_HEADER;
        let after = if untouched { String::new() } else { self.text };
        FileChange { path: self.path, before: self.before, after }
    }

    /// Error for a file that cannot be edited safely, with what to do by hand.
    pub fn manual_edit_error(path: &Path, why: &str, what: &str) -> AppError {
        AppError::new(format!("{}: {why}. Nothing was changed; {what}", path.display()))
    }
}
