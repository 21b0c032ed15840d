//! A file that is about to change: shown as a difference, or written with the old one kept beside it.

use super::failure::Failure;
use super::table::harmless;
use crate::settings::replace::replace;
use crate::settings::{Approval, Problems, SettingsFile, TrustStore, World, is_secret_name};
use crate::telemetry::Redactor;
use serde_json::{Value, json};
use similar::TextDiff;
use std::path::{Path, PathBuf};

/// One file, as it is and as it shall be.
pub struct Change {
    pub path: PathBuf,
    pub before: Option<String>,
    pub after: String,
}

impl Change {
    pub fn is_none(&self) -> bool {
        self.before.as_deref().unwrap_or_default() == self.after
    }

    /// The difference, without any secret that stands in the lines around it.
    pub fn shown(&self) -> String {
        let before = self.before.as_deref().unwrap_or_default();
        let name = self.path.display().to_string();
        let old = if self.before.is_some() { name.as_str() } else { "/dev/null" };
        let diff = TextDiff::from_lines(before, &self.after);
        let diff = diff.unified_diff().context_radius(2).header(old, &name).to_string();
        let mut secrets = Vec::new();
        for text in [before, &self.after] {
            if let Ok(tree) = crate::settings::file::parse_as(&self.path, text) {
                collect(&tree, false, &mut secrets);
            }
        }
        let redactor = Redactor::new(secrets);
        // A reference is not a secret, although it stands where one would.
        let line = |line: &str| match line.contains("${") {
            true => redactor.known(line),
            false => redactor.redact(line).into_owned(),
        };
        harmless(&diff.split_inclusive('\n').map(line).collect::<String>())
    }

    /// What a look before prints: the difference, or an object that holds it.
    pub fn preview(&self, json: bool) -> String {
        if json { self.described().to_string() } else { self.shown() }
    }

    pub fn described(&self) -> Value {
        json!({"file": self.path, "diff": self.shown()})
    }

    /// Writes it. Gives where the old one is.
    pub fn write(&self) -> Result<Option<PathBuf>, Failure> {
        let approvals = Renewal::of(self);
        let backup = replace(&self.path, self.before.as_deref(), &self.after)
            .map_err(|error| unwritable(&self.path, &error))?;
        approvals.renew(self)?;
        Ok(backup)
    }
}

/// A person's own change of an approved file keeps it approved; so does a new file beside one.
struct Renewal(Option<TrustStore>);

impl Renewal {
    fn of(change: &Change) -> Self {
        let approved = |store: &TrustStore| match SettingsFile::open(&change.path) {
            Ok(file) => {
                store.approval(&file) == Approval::Approved && change.before.as_deref() == Some(file.text())
            }
            Err(_) => {
                let folder = change.path.parent().and_then(|folder| folder.canonicalize().ok());
                let mut known = store.records().iter().map(|record| record.path.parent());
                change.before.is_none() && folder.is_some() && known.any(|known| known == folder.as_deref())
            }
        };
        Self(TrustStore::open(&World::real()).ok().filter(approved))
    }

    fn renew(self, change: &Change) -> Result<(), Failure> {
        let Some(mut store) = self.0 else { return Ok(()) };
        let file = SettingsFile::open(&change.path).map_err(Problems::from)?;
        if file.text() != change.after {
            return Ok(());
        }
        let path = change.path.display();
        store.approve(&[file.record()]).map_err(|error| {
            Failure::new(format!(
                "{path} was written and could not be approved: {error}. Run `octoprox trust`."
            ))
        })
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: the file cannot be written: {error}. Nothing was changed.", path.display()))
}

/// Every text whose name, or whose looks, say that it is secret.
fn collect(value: &Value, named: bool, found: &mut Vec<String>) {
    match value {
        Value::String(text) if (named || crate::clients::guessed(text)) && !text.contains("${") => {
            found.push(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, named, found)),
        Value::Object(members) => {
            members.iter().for_each(|(key, item)| collect(item, named || is_secret_name(key), found));
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
        let change = Change {
            path: "mcp.json".into(),
            before: Some(before.to_owned()),
            after: before.replace("{\"a\"", "{\"o\": {}, \"a\""),
        };
        let shown = change.shown();
        assert!(
            shown.contains("--- mcp.json\n+++ mcp.json\n") && shown.contains("+{\"mcpServers\": {\"o\""),
            "{shown}"
        );
        assert!(!shown.contains("canary") && shown.contains("***"), "{shown}");
        assert!(!change.is_none());
    }
}
