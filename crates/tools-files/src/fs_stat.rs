//! `fs_stat`.

use octo_toolkit::fs::{EntryKind, Read, Stat};
use octo_toolkit::{CallContext, Effect, Example, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Returns what a path is: file, folder or link, its size, times and permissions; for a missing path, an error with
/// similar names. Prefer fs_list for everything in a folder.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File, folder or link, relative to the workspace.
    path: WorkPath,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The path.
    path: String,
    /// file, directory, symlink or other.
    r#type: String,
    /// Size in bytes.
    size_bytes: u64,
    /// Creation time, RFC 3339, or unknown if the file system does not record it.
    created: String,
    /// Modification time, RFC 3339.
    modified: String,
    /// Permissions such as rw-r--r--.
    permissions: String,
    /// Permissions as octal digits, such as 0644.
    mode: String,
    /// Number of hard links.
    links: u64,
    /// Target of a link, as stored in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Type of a link's target: file, directory or other; absent if it is not in the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target_type: Option<String>,
}

pub struct StatPath;

impl Tool for StatPath {
    const NAME: &'static str = "fs_stat";
    const TITLE: &'static str = "Look at a path";
    const KEYWORDS: &'static str = "metadata size modified date exists permissions info";
    const REQUESTS: &'static [&'static str] = &[
        "how big is backup.tar and when was it last changed",
        "does the file config.toml exist",
        "is this path a directory or a symlink",
        "check the permissions of deploy.sh",
        "where does the symbolic link point to",
        "creation date of the document report.docx",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Read>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("A file", json!({"path": "notes.txt"})),
            Example::new("A folder", json!({"path": "docs"})),
        ]
    }

    async fn run(&self, input: Input, fs: Fs<Read>, _cx: &CallContext) -> Result<Output, ToolError> {
        fs.run(move |fs| {
            let place = fs.place(&input.path)?;
            let stat = fs.link_stat(&place)?;
            let link = stat.kind == EntryKind::Symlink;
            let target = if link { Some(fs.link_target(&place)?) } else { None };
            let behind = if link { fs.stat(&place).ok() } else { None };
            Ok(to_output(place.display(), &stat, target, behind.as_ref()))
        })
        .await
    }
}

fn to_output(path: String, stat: &Stat, target: Option<String>, behind: Option<&Stat>) -> Output {
    Output {
        path,
        r#type: stat.kind.as_str().to_owned(),
        size_bytes: stat.size,
        created: stat.created.map_or_else(|| "unknown".to_owned(), |time| time.to_string()),
        modified: stat.modified.to_string(),
        permissions: permissions(stat.mode),
        mode: format!("{:04o}", stat.mode & 0o7777),
        links: stat.links,
        target,
        target_type: behind.map(|stat| stat.kind.as_str().to_owned()),
    }
}

/// Format of `ls`.
fn permissions(mode: u32) -> String {
    let triple = |shift: u32, special: u32, letter: char| {
        let bits = mode >> shift;
        let run = match (bits & 1 != 0, mode & special != 0) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        };
        [if bits & 4 != 0 { 'r' } else { '-' }, if bits & 2 != 0 { 'w' } else { '-' }, run]
    };
    [triple(6, 0o4000, 's'), triple(3, 0o2000, 's'), triple(0, 0o1000, 't')].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::permissions;

    #[test]
    fn permissions_as_letters() {
        let rows = [
            (0o644, "rw-r--r--"),
            (0o755, "rwxr-xr-x"),
            (0o1777, "rwxrwxrwt"),
            (0o4640, "rwSr-----"),
            (0o2755, "rwxr-sr-x"),
            (0, "---------"),
        ];
        for (mode, wanted) in rows {
            assert_eq!(permissions(mode), wanted);
        }
    }
}
