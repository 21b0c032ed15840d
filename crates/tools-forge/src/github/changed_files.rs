//! Changed files: the list, and a diff composed of their patches if GitHub returns none.

use super::api_types::File;
use octo_toolkit::hidden_text::strip_hidden_owned;
use schemars::JsonSchema;
use serde::Serialize;

/// A changed file of the pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedFile {
    /// Path in the repository.
    pub path: String,
    /// added, removed, modified, renamed, copied or changed.
    pub status: String,
    /// Added lines.
    pub additions: u64,
    /// Removed lines.
    pub deletions: u64,
    /// Path before the rename.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_path: Option<String>,
}

impl ChangedFile {
    pub fn new(file: &File, removed: &mut usize) -> Self {
        Self {
            path: strip_hidden_owned(file.filename.clone(), removed),
            status: strip_hidden_owned(file.status.clone(), removed),
            additions: file.additions,
            deletions: file.deletions,
            previous_path: file.previous_filename.clone().map(|path| strip_hidden_owned(path, removed)),
        }
    }
}

/// Whether GitHub returns no patch for a changed file, because it is binary or too large.
pub fn lacks_patch(file: &File) -> bool {
    let only_moved = file.changes == 0 && matches!(file.status.as_str(), "renamed" | "copied" | "unchanged");
    file.patch.is_none() && !only_moved
}

/// Composes a git diff from the patches of files.
pub fn build_diff(files: &[File]) -> String {
    let mut diff = String::new();
    for file in files {
        let (new, old) =
            (file.filename.as_str(), file.previous_filename.as_deref().unwrap_or(&file.filename));
        let mut line = |text: &str, name: &str| {
            diff.push_str(text);
            diff.push_str(name);
            diff.push('\n');
        };
        line("diff --git a/", &format!("{old} b/{new}"));
        match file.status.as_str() {
            "added" => line("new file", ""),
            "removed" => line("deleted file", ""),
            "renamed" | "copied" => {
                let how = if file.status == "copied" { "copy" } else { "rename" };
                line(&format!("{how} from "), old);
                line(&format!("{how} to "), new);
            }
            _ => {}
        }
        let Some(patch) = &file.patch else { continue };
        if file.status == "added" {
            line("--- /dev/null", "")
        } else {
            line("--- a/", old)
        }
        if file.status == "removed" {
            line("+++ /dev/null", "")
        } else {
            line("+++ b/", new)
        }
        line(patch.trim_end_matches('\n'), "");
    }
    diff
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file(value: serde_json::Value) -> File {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn patches_become_a_diff() {
        let files = [
            file(
                json!({"filename": "a.rs", "status": "modified", "changes": 2, "patch": "@@ -1 +1 @@\n-a\n+b"}),
            ),
            file(json!({"filename": "n.rs", "status": "added", "changes": 1, "patch": "@@ -0,0 +1 @@\n+n"})),
            file(
                json!({"filename": "d.rs", "status": "removed", "changes": 1, "patch": "@@ -1 +0,0 @@\n-d"}),
            ),
            file(
                json!({"filename": "new.rs", "previous_filename": "old.rs", "status": "renamed", "changes": 0}),
            ),
            file(json!({"filename": "logo.png", "status": "modified", "changes": 0})),
        ];
        let expected = "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-a\n+b\n\
            diff --git a/n.rs b/n.rs\nnew file\n--- /dev/null\n+++ b/n.rs\n@@ -0,0 +1 @@\n+n\n\
            diff --git a/d.rs b/d.rs\ndeleted file\n--- a/d.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-d\n\
            diff --git a/old.rs b/new.rs\nrename from old.rs\nrename to new.rs\n\
            diff --git a/logo.png b/logo.png\n";
        assert_eq!(build_diff(&files), expected);
        assert_eq!(files.map(|file| lacks_patch(&file)), [false, false, false, false, true]);
    }
}
