//! Restoring the files that `octoprox init` has changed.

use crate::cli::commands::init_command::undo_record::{ClientEdit, RecordedChange, RemovedEntry};
use crate::clients::{Client, is_octoprox};
use crate::settings::edit::replace_file::{replace_file, replace_generated};
use crate::settings::edit::settings_edit::ServerEdit;
use crate::settings::load::settings_format;
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Result for one file.
pub enum FileUndo {
    /// As it was before the first run.
    Restored(PathBuf),
    /// Somebody else has changed it. Its servers are back, and octoprox is no longer in it.
    Edited(PathBuf),
    Removed(PathBuf),
    /// A file of the hub with changes of the user, which stays.
    Kept(PathBuf, String),
    /// It cannot be restored, with the reason.
    Stuck(PathBuf, String),
}

/// What has to be done with a file.
enum UndoStep<'a> {
    /// Replaces the content by that of the first backup. None of the backups is needed any more.
    Restore {
        text: String,
        current: String,
        changes: &'a [&'a RecordedChange],
    },
    Edit {
        text: String,
        current: String,
        changes: &'a [&'a RecordedChange],
    },
    Remove(&'a [&'a RecordedChange]),
    /// Creates a file that does not exist any more.
    Create {
        text: String,
        changes: &'a [&'a RecordedChange],
    },
    /// It is restored already.
    Done(&'a [&'a RecordedChange]),
    /// Nothing is left to do.
    Gone,
    Keep(String),
    Fail(String),
}

/// Whether a digest is that of a text.
type IsDigestOf<'a> = dyn Fn(&str, &str) -> bool + 'a;

/// Restores the files of clients first. While one of them cannot be restored, the hub's own files stay.
pub(super) fn undo_files(
    changes: &[RecordedChange],
    settings: &Path,
    is_of: &IsDigestOf<'_>,
) -> Vec<FileUndo> {
    let mut paths: Vec<&PathBuf> = Vec::new();
    for change in changes {
        if !paths.contains(&&change.path) {
            paths.push(&change.path);
        }
    }
    let of_path = |path: &PathBuf| changes.iter().filter(|change| change.path == *path).collect::<Vec<_>>();
    let is_client = |path: &&&PathBuf| of_path(path).iter().any(|change| change.client.is_some());
    let undo = |path: &&PathBuf| run(path, plan(path, &of_path(path), settings, is_of));
    let mut done: Vec<FileUndo> = paths.iter().filter(is_client).map(undo).collect();
    let is_stuck = done.iter().any(|undo| matches!(undo, FileUndo::Stuck(..)));
    for path in paths.iter().filter(|path| !is_client(path)) {
        let in_use = || FileUndo::Stuck((*path).clone(), "a client still uses it".to_owned());
        done.push(if is_stuck { in_use() } else { undo(path) });
    }
    done
}

fn plan<'a>(
    path: &Path,
    changes: &'a [&'a RecordedChange],
    settings: &Path,
    is_of: &IsDigestOf<'_>,
) -> UndoStep<'a> {
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return UndoStep::Gone };
    let current = match std::fs::read_to_string(path) {
        Ok(current) => current,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return plan_missing(path, first, changes, is_of);
        }
        Err(error) => return UndoStep::Fail(format!("it cannot be read: {error}")),
    };
    // An earlier attempt may have been interrupted.
    if first.before.as_deref().is_some_and(|before| is_of(before, &current)) {
        return UndoStep::Done(changes);
    }
    // Somebody else may have changed the file after a run, or between two of them.
    let is_own = is_of(&last.after, &current)
        && changes.windows(2).all(|pair| match pair {
            [earlier, later] => later.before.as_deref() == Some(&earlier.after),
            _ => true,
        });
    if !is_own {
        return match edit_client(path, &current, changes, settings, is_of) {
            Some(Ok(text)) => UndoStep::Edit { text, current, changes },
            Some(Err(why)) => UndoStep::Fail(format!("it was changed after `octoprox init`, and {why}")),
            None => UndoStep::Keep("you have changed it; remove it if you do not need it".to_owned()),
        };
    }
    match &first.backup {
        None => UndoStep::Remove(changes),
        Some(backup) => match read_backup(backup, first, is_of) {
            Ok(text) => UndoStep::Restore { text, current, changes },
            Err(why) => UndoStep::Fail(why),
        },
    }
}

/// A file that does not exist any more is created again from its backup, if its directory is still there.
fn plan_missing<'a>(
    path: &Path,
    first: &RecordedChange,
    changes: &'a [&'a RecordedChange],
    is_of: &IsDigestOf<'_>,
) -> UndoStep<'a> {
    let is_link = path.symlink_metadata().is_ok();
    match &first.backup {
        Some(_) if is_link => UndoStep::Fail("it is a link to a file that does not exist".to_owned()),
        Some(backup) if path.parent().is_some_and(Path::is_dir) => match read_backup(backup, first, is_of) {
            Ok(text) => UndoStep::Create { text, changes },
            Err(why) => UndoStep::Fail(format!("it no longer exists, and {why}")),
        },
        _ => UndoStep::Gone,
    }
}

/// The content of a backup, if it is what it was.
fn read_backup(backup: &Path, change: &RecordedChange, is_of: &IsDigestOf<'_>) -> Result<String, String> {
    let shown = backup.display();
    let text = std::fs::read_to_string(backup).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let is_same = change.before.as_deref().is_some_and(|before| is_of(before, &text));
    is_same.then_some(text).ok_or_else(|| format!("its backup {shown} was changed"))
}

/// Takes back the changes of a client's list in a file with other changes. `None` if it is not the file of a client.
fn edit_client(
    path: &Path,
    current: &str,
    changes: &[&RecordedChange],
    settings: &Path,
    is_of: &IsDigestOf<'_>,
) -> Option<Result<String, String>> {
    let mut text = current.to_owned();
    for change in changes.iter().rev() {
        match take_back((path, settings), text, change, change.client.as_ref()?, is_of) {
            Ok(edited) => text = edited,
            Err(why) => return Some(Err(why)),
        }
    }
    Some(Ok(text))
}

fn take_back(
    (path, settings): (&Path, &Path),
    mut text: String,
    change: &RecordedChange,
    client: &ClientEdit,
    is_of: &IsDigestOf<'_>,
) -> Result<String, String> {
    let before = match &change.backup {
        Some(backup) => read_backup(backup, change, is_of)?,
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
    if client.registered
        && let Some(name) = registered_name(path, &text, list, settings)
    {
        text = ServerEdit { path, list, name: &name }.remove(&text)?;
    }
    Ok(text)
}

/// The name under which the client starts octoprox with these settings, which the user may have changed.
fn registered_name(path: &Path, text: &str, list: &[&str], settings: &Path) -> Option<String> {
    let tree = settings_format::parse_as(path, text).ok()?;
    let list = list.iter().try_fold(&tree, |tree, key| tree.get(key))?.as_object()?;
    let settings = Value::from(settings.to_str()?).to_string();
    let is_own =
        |entry: &Value| entry.as_object().is_some_and(is_octoprox) && entry.to_string().contains(&settings);
    list.iter().find(|(_, entry)| is_own(entry)).map(|(name, _)| name.clone())
}

/// Returns an entry of a list, as written.
fn entry_at(path: &Path, text: &str, list: &[&str], name: &str) -> Option<Map<String, Value>> {
    let tree = settings_format::parse_as(path, text).ok()?;
    let list = list.iter().try_fold(&tree, |tree, key| tree.get(key))?;
    list.get(name)?.as_object().cloned()
}

fn run(path: &Path, step: UndoStep<'_>) -> FileUndo {
    let owned = path.to_owned();
    let (done, changes, undo) = match step {
        UndoStep::Keep(why) => return FileUndo::Kept(owned, why),
        UndoStep::Fail(why) => return FileUndo::Stuck(owned, why),
        UndoStep::Gone => return FileUndo::Removed(owned),
        UndoStep::Done(changes) => (Ok(()), changes, FileUndo::Restored(owned)),
        UndoStep::Create { text, changes } => {
            (replace_file(path, None, &text).map(drop), changes, FileUndo::Restored(owned))
        }
        UndoStep::Remove(changes) => (std::fs::remove_file(path), changes, FileUndo::Removed(owned)),
        UndoStep::Edit { text, current, changes } => {
            (replace_file(path, Some(&current), &text).map(drop), changes, FileUndo::Edited(owned))
        }
        UndoStep::Restore { text, current, changes } => {
            (replace_generated(path, Some(&current), &text), changes, FileUndo::Restored(owned))
        }
    };
    if let Err(error) = done {
        return FileUndo::Stuck(path.to_owned(), error.to_string());
    }
    for backup in changes.iter().filter_map(|change| change.backup.as_ref()) {
        let _ = std::fs::remove_file(backup);
    }
    undo
}
