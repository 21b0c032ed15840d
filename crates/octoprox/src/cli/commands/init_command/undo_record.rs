//! What `octoprox init` has changed, so that it can be undone. The record is in the state directory, which only the user
//! can write.

use crate::app_error::AppError;
use crate::cli::commands::init_command::file_undo::{FileUndo, undo_files};
use crate::cli::file_change::FileChange;
use crate::settings::edit::replace_file::{lock_folder_of, replace_generated};
use crate::settings::load::settings_locations;
use crate::settings::{Environment, SecretStore, state_dir};
use crate::stores::DigestKey;
use octo_model::sha256_hex;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const RECORD_DIR: &str = "init";
const BACKUP_DIR: &str = "backups";

/// Files that were changed, in order, and secrets that were stored. A file may be in it several times.
#[derive(Default, Serialize, Deserialize)]
pub struct UndoRecord {
    /// Whether the directory of the settings was created.
    created_dir: bool,
    pub(super) changes: Vec<RecordedChange>,
    secrets: Vec<RecordedSecret>,
    #[serde(skip)]
    path: PathBuf,
    /// Of all digests: files and secrets can be guessed from a plain one.
    #[serde(skip)]
    key: Option<DigestKey>,
    /// Content of the record when it was read.
    #[serde(skip)]
    before: Option<String>,
    /// One process at a time sets up or undoes.
    #[serde(skip)]
    _lock: Option<File>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct RecordedChange {
    pub(super) path: PathBuf,
    /// The file as it was; `None` if it did not exist.
    pub(super) backup: Option<PathBuf>,
    /// Digests of the file before and after the change.
    pub(super) before: Option<String>,
    pub(super) after: String,
    /// For the file of a client.
    pub(super) client: Option<ClientEdit>,
}

/// What was changed in a client's list.
#[derive(Clone, Serialize, Deserialize)]
pub struct ClientEdit {
    pub id: String,
    /// Whether octoprox was added.
    pub registered: bool,
    pub removed: Vec<RemovedEntry>,
}

/// Place of an entry in a client's file: the keys of its list, and its name.
#[derive(Clone, Serialize, Deserialize)]
pub struct RemovedEntry {
    pub list: Vec<String>,
    pub name: String,
}

#[derive(Serialize, Deserialize)]
struct RecordedSecret {
    name: String,
    /// Digest of its value.
    #[serde(rename = "sha256")]
    digest: String,
}

/// Result of undoing everything.
pub struct UndoResult {
    pub files: Vec<FileUndo>,
    pub removed_secrets: Vec<String>,
    /// Secrets with another value than the one that was stored, or still in use.
    pub kept_secrets: Vec<String>,
}

impl UndoRecord {
    /// Opens the record of a settings file, for one process at a time.
    pub fn open(settings: &Path, world: &Environment) -> Result<Self, AppError> {
        let named = world.variable("OCTOPROX_STATE_DIR").map(|dir| world.current_dir.join(dir));
        let dir =
            state_dir(named.or_else(|| settings_locations::state_dir(world)).as_ref())?.join(RECORD_DIR);
        let settings = settings.canonicalize().unwrap_or_else(|_| settings.to_owned());
        let path = dir.join(format!("{}.json", sha256_hex(settings.as_os_str().as_encoded_bytes())));
        let failed = |error: &dyn std::fmt::Display| {
            AppError::new(format!("{}: the record of changes cannot be read: {error}.", path.display()))
        };
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(|error| failed(&error))?;
        let lock = lock_folder_of(&path).map_err(|error| failed(&error))?;
        let key = DigestKey::open(&dir).map_err(|error| failed(&error))?;
        let before = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            read => Some(read.map_err(|error| failed(&error))?),
        };
        let record: Option<Self> =
            before.as_deref().map(serde_json::from_str).transpose().map_err(|error| failed(&error))?;
        Ok(Self { path, key: Some(key), before, _lock: Some(lock), ..record.unwrap_or_default() })
    }

    /// Directory of the backups of the clients' files.
    pub fn backup_dir(&self) -> PathBuf {
        self.path.with_file_name(BACKUP_DIR)
    }

    fn digest(&self, text: &str) -> String {
        self.key.as_ref().map(|key| key.digest(text)).unwrap_or_default()
    }

    fn is_of(&self, digest: &str, text: &str) -> bool {
        self.key.as_ref().is_some_and(|key| key.is_of(digest, text))
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.secrets.is_empty()
    }

    pub fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// Records whether the directory of the settings exists, before the first change.
    pub fn note_dir(&mut self, settings: &Path) {
        self.created_dir |= settings.parent().is_some_and(|dir| !dir.exists());
    }

    /// Adds a change that was written.
    pub fn add(
        &mut self,
        change: &FileChange,
        backup: Option<PathBuf>,
        client: Option<ClientEdit>,
    ) -> Result<(), AppError> {
        // The same text has the same digest, also if an earlier version wrote the first one.
        let last = self.changes.iter().rfind(|last| last.path == change.path).map(|last| last.after.clone());
        let before = change.before.as_ref().map(|text| match last {
            Some(last) if self.is_of(&last, text) => last,
            _ => self.digest(text),
        });
        let (path, after) = (change.path.clone(), self.digest(&change.after));
        self.changes.push(RecordedChange { path, backup, before, after, client });
        self.write()
    }

    /// Adds a secret that was stored.
    pub fn add_secret(&mut self, name: &str, value: &str) -> Result<(), AppError> {
        let digest = self.digest(value);
        self.secrets.push(RecordedSecret { name: name.to_owned(), digest });
        self.write()
    }

    fn write(&mut self) -> Result<(), AppError> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        replace_generated(&self.path, self.before.as_deref(), &text).map_err(|error| {
            AppError::new(format!("{}: cannot write file: {error}.", self.path.display()))
        })?;
        self.before = Some(text);
        Ok(())
    }

    /// Restores every file as it was before the first change. While a client has to be left as it is, the settings and
    /// secrets that it needs stay, too.
    pub fn undo(mut self, settings: &Path, store: Option<&SecretStore>) -> Result<UndoResult, AppError> {
        let files = undo_files(&self.changes, settings, &|digest, text| self.is_of(digest, text));
        let is_stuck =
            |path: &Path| files.iter().any(|undo| matches!(undo, FileUndo::Stuck(stuck, _) if stuck == path));
        self.changes.retain(|change| is_stuck(&change.path));
        let mut result =
            UndoResult { files: Vec::new(), removed_secrets: Vec::new(), kept_secrets: Vec::new() };
        if self.changes.is_empty() {
            self.remove_secrets(store, &files, &mut result)?;
            let _ = std::fs::remove_file(&self.path);
            if self.created_dir {
                // Only if it is empty.
                let _ = settings.parent().map(std::fs::remove_dir);
            }
        } else {
            self.write()?;
        }
        result.files = files;
        Ok(result)
    }

    /// Removes the secrets, except those with another value and those that a file which stays uses.
    fn remove_secrets(
        &self,
        store: Option<&SecretStore>,
        files: &[FileUndo],
        result: &mut UndoResult,
    ) -> Result<(), AppError> {
        let Some(store) = store else { return Ok(()) };
        let stays = |undo: &FileUndo| match undo {
            FileUndo::Kept(path, _) => std::fs::read_to_string(path).ok(),
            _ => None,
        };
        let texts: Vec<String> = files.iter().filter_map(stays).collect();
        let is_used = |name: &str| {
            let forms = [format!("${{secret:{name}}}"), format!("${{secret:{name}:-")];
            texts.iter().any(|text| forms.iter().any(|form| text.contains(form)))
        };
        let stored = store.get_all(self.secrets.iter().map(|secret| secret.name.as_str()))?;
        for secret in &self.secrets {
            match stored.get(&secret.name) {
                Some(value) if self.is_of(&secret.digest, value.expose()) && !is_used(&secret.name) => {
                    store.remove(&secret.name)?;
                    result.removed_secrets.push(secret.name.clone());
                }
                Some(_) => result.kept_secrets.push(secret.name.clone()),
                None => {}
            }
        }
        Ok(())
    }
}
