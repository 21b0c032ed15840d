//! What `octoprox init` has changed, so that it can be undone.

use crate::app_error::AppError;
use crate::cli::file_change::FileChange;
use crate::settings::SecretStore;
use crate::settings::edit::replace_file::replace_generated;
use octo_model::sha256_hex;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Name of the record, beside the settings.
const RECORD_FILE: &str = ".init-undo.json";

/// Files that were changed, in order. A file may be in it several times.
#[derive(Default, Serialize, Deserialize)]
pub struct UndoRecord {
    files: Vec<ChangedFile>,
    /// Secrets that were stored.
    #[serde(default)]
    secrets: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct ChangedFile {
    path: PathBuf,
    /// The file as it was; `None` if it did not exist.
    backup: Option<PathBuf>,
    /// SHA-256 of the file after the change.
    sha256: String,
}

/// Result of undoing the changes of one file.
pub enum FileUndo {
    Restored(PathBuf),
    Removed(PathBuf),
    /// It cannot be restored, with the reason.
    Kept(PathBuf, String),
}

impl UndoRecord {
    fn path(settings: &Path) -> PathBuf {
        settings.with_file_name(RECORD_FILE)
    }

    /// Reads the record beside the settings.
    pub fn read(settings: &Path) -> Self {
        let text = std::fs::read_to_string(Self::path(settings)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.secrets.is_empty()
    }

    /// Adds a change that was written.
    pub fn add(&mut self, change: &FileChange, backup: Option<PathBuf>) {
        let sha256 = sha256_hex(change.after.as_bytes());
        self.files.push(ChangedFile { path: change.path.clone(), backup, sha256 });
    }

    /// The secrets that were stored.
    pub fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// Adds secrets that were stored.
    pub fn add_secrets(&mut self, names: Vec<String>) {
        self.secrets.extend(names);
    }

    pub fn write(&self, settings: &Path) -> Result<(), AppError> {
        let path = Self::path(settings);
        let failed = |error| AppError::new(format!("{}: cannot write file: {error}.", path.display()));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let before = std::fs::read_to_string(&path).ok();
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        replace_generated(&path, before.as_deref(), &text).map_err(failed)
    }

    /// Restores every file as it was before the first change. A file that somebody has changed since is kept. Removes the
    /// record when everything is restored.
    pub fn undo(self, settings: &Path, secrets: Option<&SecretStore>) -> Result<Vec<FileUndo>, AppError> {
        let mut paths: Vec<&PathBuf> = Vec::new();
        for file in &self.files {
            if !paths.contains(&&file.path) {
                paths.push(&file.path);
            }
        }
        let mut done = Vec::new();
        let mut left = Vec::new();
        for path in paths {
            let changes: Vec<&ChangedFile> = self.files.iter().filter(|file| file.path == *path).collect();
            let undone = undo_file(path, &changes);
            if matches!(undone, FileUndo::Kept(..)) {
                left.push(path.clone());
            }
            done.push(undone);
        }
        let files: Vec<ChangedFile> =
            self.files.into_iter().filter(|file| left.contains(&file.path)).collect();
        if files.is_empty() {
            for name in &self.secrets {
                secrets.map_or(Ok(false), |secrets| secrets.remove(name))?;
            }
            let _ = std::fs::remove_file(Self::path(settings));
            // Only if it is empty.
            let _ = settings.parent().map(std::fs::remove_dir);
        } else {
            Self { files, secrets: self.secrets }.write(settings)?;
        }
        Ok(done)
    }
}

fn undo_file(path: &Path, changes: &[&ChangedFile]) -> FileUndo {
    let kept = |why: &str| FileUndo::Kept(path.to_owned(), why.to_owned());
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
        return kept("nothing is recorded");
    };
    let Ok(now) = std::fs::read_to_string(path) else { return kept("it cannot be read") };
    if sha256_hex(now.as_bytes()) != last.sha256 {
        return kept("it was changed after `octoprox init`");
    }
    let undone = match &first.backup {
        None => std::fs::remove_file(path).map(|()| FileUndo::Removed(path.to_owned())),
        Some(backup) => std::fs::read_to_string(backup)
            .and_then(|before| replace_generated(path, Some(&now), &before))
            .map(|()| FileUndo::Restored(path.to_owned())),
    };
    match undone {
        Ok(undone) => {
            for backup in changes.iter().filter_map(|change| change.backup.as_ref()) {
                let _ = std::fs::remove_file(backup);
            }
            undone
        }
        Err(error) => kept(&error.to_string()),
    }
}
