//! Restoring the files that `octoprox init` has changed.

use crate::cli::commands::init_command::undo_record::{ClientEdit, RecordedChange, RemovedEntry};
use crate::clients::{Client, SERVER_NAME};
use crate::settings::edit::replace_file::{replace_file, replace_generated};
use crate::settings::edit::settings_edit::ServerEdit;
use crate::settings::load::settings_format;
use octo_model::sha256_hex;
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Result for one file.
pub enum FileUndo {
    /// As it was before the first run.
    Restored(PathBuf),
    /// As it was before the last run: it was changed between the runs.
    RestoredLast(PathBuf),
    /// It was changed since. Its servers are back, and octoprox is no longer in it.
    Edited(PathBuf),
    Removed(PathBuf),
    /// Unchanged, with the reason.
    Kept(PathBuf, String),
}

/// What has to be done with a file.
enum UndoStep<'a> {
    /// Replaces the content by that of a backup; the backups of these changes are no longer needed.
    Restore {
        text: String,
        current: String,
        done: Vec<&'a RecordedChange>,
        is_first: bool,
    },
    Edit {
        text: String,
        current: String,
    },
    Remove,
    /// Nothing is left to do.
    Gone,
    Keep(String),
}

/// Restores the files of clients first. While one of them cannot be restored, the hub's own files stay.
pub(super) fn undo_files(changes: &[RecordedChange]) -> Vec<FileUndo> {
    let mut paths: Vec<&PathBuf> = Vec::new();
    for change in changes {
        if !paths.contains(&&change.path) {
            paths.push(&change.path);
        }
    }
    let of_path = |path: &PathBuf| changes.iter().filter(|change| change.path == *path).collect::<Vec<_>>();
    let is_client = |path: &&&PathBuf| of_path(path).iter().any(|change| change.client.is_some());
    let mut done: Vec<FileUndo> =
        paths.iter().filter(is_client).map(|path| run(path, plan(path, &of_path(path)))).collect();
    let is_stuck = done.iter().any(|undo| matches!(undo, FileUndo::Kept(..)));
    for path in paths.iter().filter(|path| !is_client(path)) {
        let step = match is_stuck {
            true => UndoStep::Keep("a client still uses octoprox".to_owned()),
            false => plan(path, &of_path(path)),
        };
        done.push(run(path, step));
    }
    done
}

fn plan<'a>(path: &Path, changes: &[&'a RecordedChange]) -> UndoStep<'a> {
    let Some(last) = changes.last() else { return UndoStep::Gone };
    let current = match std::fs::read_to_string(path) {
        Ok(current) => current,
        Err(error) if error.kind() == ErrorKind::NotFound && last.backup.is_none() => return UndoStep::Gone,
        Err(error) => return UndoStep::Keep(format!("it cannot be read: {error}")),
    };
    if sha256_hex(current.as_bytes()) != last.after {
        return match edit_client(path, &current, changes) {
            Some(Ok(text)) => UndoStep::Edit { text, current },
            Some(Err(why)) => UndoStep::Keep(format!("it was changed after `octoprox init`, and {why}")),
            None => UndoStep::Keep("it was changed after `octoprox init`".to_owned()),
        };
    }
    // Further back only while nobody else has changed the file between two runs.
    let mut done = vec![*last];
    for earlier in changes.iter().rev().skip(1) {
        let is_next = done.last().is_some_and(|at| at.before.as_deref() == Some(&earlier.after));
        if !is_next {
            break;
        }
        done.push(earlier);
    }
    let is_first = done.len() == changes.len();
    let first = done.last().copied().unwrap_or(last);
    match &first.backup {
        None => UndoStep::Remove,
        Some(backup) => match read_backup(backup, first) {
            Ok(text) => UndoStep::Restore { text, current, done, is_first },
            Err(why) => UndoStep::Keep(why),
        },
    }
}

/// The content of a backup, if it is what it was.
fn read_backup(backup: &Path, change: &RecordedChange) -> Result<String, String> {
    let shown = backup.display();
    let text = std::fs::read_to_string(backup).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let is_same = change.before.as_deref() == Some(&sha256_hex(text.as_bytes()));
    is_same.then_some(text).ok_or_else(|| format!("its backup {shown} was changed"))
}

/// Takes back the changes of a client's list in a file with other changes. `None` if it is not the file of a client.
fn edit_client(path: &Path, current: &str, changes: &[&RecordedChange]) -> Option<Result<String, String>> {
    let mut text = current.to_owned();
    for change in changes.iter().rev() {
        match take_back(path, text, change, change.client.as_ref()?) {
            Ok(edited) => text = edited,
            Err(why) => return Some(Err(why)),
        }
    }
    Some(Ok(text))
}

fn take_back(
    path: &Path,
    mut text: String,
    change: &RecordedChange,
    client: &ClientEdit,
) -> Result<String, String> {
    let before = match &change.backup {
        Some(backup) => read_backup(backup, change)?,
        None => String::new(),
    };
    for RemovedEntry { list, name } in &client.removed {
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        let edit = ServerEdit { path, list: &list, name };
        let Some(entry) = entry_at(path, &before, &list, name) else {
            return Err(format!("`{name}` is not in its backup"));
        };
        if entry_at(path, &text, &list, name).is_none() {
            text = edit.add(&text, &entry)?;
        }
    }
    let list = Client::find(&client.id).map(|client| client.list).unwrap_or_default();
    if client.registered && entry_at(path, &text, list, SERVER_NAME).is_some() {
        text = ServerEdit { path, list, name: SERVER_NAME }.remove(&text)?;
    }
    Ok(text)
}

/// Returns an entry of a list, as written.
fn entry_at(path: &Path, text: &str, list: &[&str], name: &str) -> Option<Map<String, Value>> {
    let tree = settings_format::parse_as(path, text).ok()?;
    let list = list.iter().try_fold(&tree, |tree, key| tree.get(key))?;
    list.get(name)?.as_object().cloned()
}

fn run(path: &Path, step: UndoStep<'_>) -> FileUndo {
    let owned = path.to_owned();
    let done = match step {
        UndoStep::Keep(why) => return FileUndo::Kept(owned, why),
        UndoStep::Gone => return FileUndo::Removed(owned),
        UndoStep::Remove => std::fs::remove_file(path).map(|()| FileUndo::Removed(owned)),
        UndoStep::Edit { text, current } => {
            replace_file(path, Some(&current), &text).map(|_| FileUndo::Edited(owned))
        }
        UndoStep::Restore { text, current, done, is_first } => replace_generated(path, Some(&current), &text)
            .map(|()| {
                for backup in done.iter().filter_map(|change| change.backup.as_ref()) {
                    let _ = std::fs::remove_file(backup);
                }
                if is_first { FileUndo::Restored(owned) } else { FileUndo::RestoredLast(owned) }
            }),
    };
    done.unwrap_or_else(|error| FileUndo::Kept(path.to_owned(), error.to_string()))
}
