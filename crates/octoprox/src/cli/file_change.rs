//! Change of a file: shown as a diff, or written with a backup.

use crate::app_error::AppError;
use crate::packages::{LockedPackage, ServersLock};
use crate::settings::edit::replace_file::{BackupPlace, replace_generated, replace_with_backup};
use crate::settings::{Approval, Environment, SettingsFile, SettingsProblems, TrustStore, is_secret_name};
use crate::telemetry::Redactor;
use crate::terminal::text_table::sanitize_text;
use serde_json::{Value, json};
use similar::TextDiff;
use std::path::{Path, PathBuf};

/// Old and new text of a file.
pub struct FileChange {
    pub path: PathBuf,
    pub before: Option<String>,
    pub after: String,
}

impl FileChange {
    pub fn is_empty(&self) -> bool {
        self.before.as_deref().unwrap_or_default() == self.after
    }

    /// Unified diff with secrets redacted, also those in context lines.
    pub fn redacted_diff(&self) -> String {
        self.redacted_diff_without(&[])
    }

    /// The same, without these secrets.
    pub fn redacted_diff_without(&self, known: &[&String]) -> String {
        let before = self.before.as_deref().unwrap_or_default();
        let name = self.path.display().to_string();
        let old = if self.before.is_some() { name.as_str() } else { "/dev/null" };
        let diff = TextDiff::from_lines(before, &self.after);
        let diff = diff.unified_diff().context_radius(2).header(old, &name).to_string();
        let mut secrets: Vec<String> = known.iter().map(|secret| (*secret).clone()).collect();
        for text in [before, &self.after] {
            if let Ok(tree) = crate::settings::load::settings_format::parse_as(&self.path, text) {
                collect_secrets(&tree, false, &mut secrets);
            }
        }
        let escaped: Vec<String> = secrets.iter().flat_map(|secret| escaped_forms(secret)).collect();
        let redactor = Redactor::new(secrets.into_iter().chain(escaped));
        // A `${…}` reference is not a secret.
        let line = |line: &str| match line.contains("${") {
            true => redactor.redact_known(line),
            false => redactor.redact(line).into_owned(),
        };
        sanitize_text(&diff.split_inclusive('\n').map(line).collect::<String>())
    }

    /// Output of `--dry-run`: the diff, or a JSON object that contains it.
    pub fn preview(&self, json: bool) -> String {
        if json { self.to_json().to_string() } else { self.redacted_diff() }
    }

    pub fn to_json(&self) -> Value {
        json!({"file": self.path, "diff": self.redacted_diff()})
    }

    /// Change of the lock file beside a file with servers.
    pub fn of_lock(
        servers_file: &Path,
        server: &str,
        package: Option<&LockedPackage>,
    ) -> Result<Self, AppError> {
        let path = ServersLock::path_beside(servers_file);
        let (before, after) = ServersLock::edit(&path, server, package)?;
        // A file without packages is not created.
        let after = if before.is_none() && package.is_none() { String::new() } else { after };
        Ok(Self { path, before, after })
    }

    /// Writes a generated file, which needs no backup.
    pub fn write_generated(&self) -> Result<(), AppError> {
        if self.is_empty() {
            return Ok(());
        }
        let approvals = ApprovalRenewal::for_change(self);
        replace_generated(&self.path, self.before.as_deref(), &self.after)
            .map_err(|error| write_error(&self.path, &error))?;
        approvals.renew(self)
    }

    /// Restores a generated file, because a file that belongs to it could not be written.
    pub fn undo_generated(&self) {
        let undone = match &self.before {
            Some(before) => replace_generated(&self.path, Some(&self.after), before),
            None if self.after.is_empty() => Ok(()),
            None => std::fs::remove_file(&self.path),
        };
        if let Err(error) = undone {
            tracing::warn!(%error, path = %self.path.display(), "cannot restore the file");
        }
    }

    /// Writes the file and returns the path of the backup.
    pub fn write(&self) -> Result<Option<PathBuf>, AppError> {
        self.write_with_backup(BackupPlace::Beside)
    }

    /// The same, with a choice where the backup goes.
    pub fn write_with_backup(&self, place: BackupPlace<'_>) -> Result<Option<PathBuf>, AppError> {
        let approvals = ApprovalRenewal::for_change(self);
        let backup = replace_with_backup(&self.path, self.before.as_deref(), &self.after, place)
            .map_err(|error| write_error(&self.path, &error))?;
        approvals.renew(self)?;
        Ok(backup)
    }
}

/// Keeps an approved file approved when a command of the user changes it, and approves a new file beside one.
struct ApprovalRenewal(Option<TrustStore>);

impl ApprovalRenewal {
    fn for_change(change: &FileChange) -> Self {
        let approved = |store: &TrustStore| match SettingsFile::open_lock(&change.path) {
            Ok(file) => {
                store.approval(&file) == Approval::Approved && change.before.as_deref() == Some(file.text())
            }
            Err(_) => {
                let folder = change.path.parent().and_then(|folder| folder.canonicalize().ok());
                let mut known = store.records().iter().map(|record| record.path.parent());
                change.before.is_none() && folder.is_some() && known.any(|known| known == folder.as_deref())
            }
        };
        Self(TrustStore::open(&Environment::current()).ok().filter(approved))
    }

    fn renew(self, change: &FileChange) -> Result<(), AppError> {
        let Some(mut store) = self.0 else { return Ok(()) };
        let file = SettingsFile::open_lock(&change.path).map_err(SettingsProblems::from)?;
        if file.text() != change.after {
            return Ok(());
        }
        let path = change.path.display();
        store.approve(&[file.record()]).map_err(|error| {
            AppError::new(format!(
                "{path} was written but could not be approved: {error}. Run `octoprox trust`."
            ))
        })
    }
}

fn write_error(path: &Path, error: &std::io::Error) -> AppError {
    AppError::new(format!("{}: cannot write file: {error}. Nothing was changed.", path.display()))
}

/// Forms of a string in JSON: escaped as needed, and in ASCII only.
fn escaped_forms(text: &str) -> [String; 2] {
    let quoted = Value::from(text).to_string();
    let escaped = quoted.trim_matches('"').to_owned();
    let ascii = |c: char| match c.is_ascii() {
        true => c.to_string(),
        false => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    let ascii = escaped.chars().map(ascii).collect();
    [escaped, ascii]
}

/// Collects the strings whose name or format indicates a secret.
fn collect_secrets(value: &Value, named: bool, found: &mut Vec<String>) {
    match value {
        Value::String(text) if (named || crate::clients::looks_secret(text)) && !text.contains("${") => {
            found.push(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect_secrets(item, named, found)),
        Value::Object(members) => {
            members.iter().for_each(|(key, item)| collect_secrets(item, named || is_secret_name(key), found));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_tell_no_secrets() {
        let before = "{\"mcpServers\": {\"a\": {\"env\": {\"MY_KEY\": \"canary-seven\"}}}}\n";
        let change = FileChange {
            path: "mcp.json".into(),
            before: Some(before.to_owned()),
            after: before.replace("{\"a\"", "{\"o\": {}, \"a\""),
        };
        let shown = change.redacted_diff();
        assert!(
            shown.contains("--- mcp.json\n+++ mcp.json\n") && shown.contains("+{\"mcpServers\": {\"o\""),
            "{shown}"
        );
        assert!(!shown.contains("canary") && shown.contains("***"), "{shown}");
        assert!(!change.is_empty());
    }
}
