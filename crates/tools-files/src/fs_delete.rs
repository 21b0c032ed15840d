//! `fs_delete`.

use octo_toolkit::fs::{Change, EntryKind, Write};
use octo_toolkit::{CallContext, Effect, Example, Fs, Kind, RootedPath, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Deletes a file, a link (not its target) or an empty folder; a non-empty folder only with recursive. Returns what
/// was deleted. Prefer fs_move to keep a copy.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File, link or folder to delete, relative to the workspace.
    path: WorkPath,
    /// Delete a folder with everything in it.
    #[serde(default)]
    recursive: bool,
    /// Do not fail if nothing exists at the path.
    #[serde(default)]
    force: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The path that was given.
    path: String,
    /// False if there was nothing to delete.
    removed: bool,
    /// Number of deleted files and folders.
    count: u64,
    /// True if fs_undo can restore it.
    undo: bool,
    /// What was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

pub struct Delete;

impl Tool for Delete {
    const NAME: &'static str = "fs_delete";
    const TITLE: &'static str = "Delete files and folders";
    const KEYWORDS: &'static str = "remove erase unlink rm trash directory";
    const REQUESTS: &'static [&'static str] = &[
        "get rid of old.log",
        "remove the build folder with everything in it",
        "erase the temp files from disk",
        "throw away an empty directory",
        "clean up the leftover draft.txt, if it is there",
        "wipe the cache directory from the project",
    ];
    const EFFECT: Effect = Effect::destroys().idempotent();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Write>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("A file", json!({"path": "notes.txt"})),
            Example::new("A folder with everything in it", json!({"path": "docs", "recursive": true})),
            Example::new("A file that may be missing", json!({"path": "old.log", "force": true}))
                .with_output(json!({"path": "old.log", "removed": false, "count": 0, "undo": false})),
        ]
    }

    async fn run(&self, input: Input, fs: Fs<Write>, _cx: &CallContext) -> Result<Output, ToolError> {
        fs.run(move |fs| {
            let place = fs.place(&input.path)?;
            if place.relative().file_name().is_none() {
                return Err(ToolError::denied("A root of the workspace cannot be deleted.")
                    .hint("Delete its entries instead; fs_list shows them."));
            }
            match fs.link_stat(&place) {
                Ok(stat) => delete(fs, &place, stat.kind, input.recursive),
                Err(error) if error.kind == Kind::NotFound && input.force => {
                    Ok(Output { path: place.display(), removed: false, count: 0, undo: false, warning: None })
                }
                Err(error) => Err(error),
            }
        })
        .await
    }
}

fn delete(fs: &Fs<Write>, place: &RootedPath, kind: EntryKind, recursive: bool) -> Result<Output, ToolError> {
    let path = place.display();
    let mut undo = false;
    let (count, lost) = match kind {
        EntryKind::Folder if recursive => {
            let count = fs.remove_tree(place)?;
            (
                count,
                format!(
                    "Deleted the directory `{path}`, {count} entries in total; fs_undo cannot restore them."
                ),
            )
        }
        EntryKind::Folder => {
            refuse_full(fs, place)?;
            fs.remove(place)?;
            (1, format!("Deleted the empty directory `{path}`."))
        }
        EntryKind::Symlink | EntryKind::Other => {
            fs.remove(place)?;
            (1, format!("Deleted the link or special file `{path}`; the target of a link is unchanged."))
        }
        EntryKind::File => {
            let gone = fs.change(vec![Change::Remove { place: place.clone(), if_hash: None }])?;
            undo = gone.iter().all(|gone| gone.undo);
            let back = if undo { "fs_undo can restore it" } else { "it cannot be restored" };
            (1, format!("Deleted `{path}`; {back}."))
        }
    };
    Ok(Output { path, removed: true, count, undo, warning: Some(lost) })
}

fn refuse_full(fs: &Fs<Write>, place: &RootedPath) -> Result<(), ToolError> {
    let (path, inside) = (place.display(), fs.open_folder(place)?.entries()?.len());
    if inside == 0 {
        return Ok(());
    }
    Err(ToolError::invalid(format!("`{path}` is a directory with {inside} entries; nothing was deleted."))
        .hint(format!(
            "To delete all of them, call fs_delete {{\"path\": \"{path}\", \"recursive\": true}}."
        )))
}
