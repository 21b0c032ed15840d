//! `fs_delete`.

use octo_toolkit::fs::{Change, EntryKind, Write};
use octo_toolkit::{CallContext, Effect, Example, Fs, Kind, RootedPath, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Deletes a file, a link (not what it points to) or an empty folder; a full folder only with recursive. The answer
/// says what is gone. Prefer fs_move to keep a copy.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File, link or folder to delete, relative to the workspace.
    path: WorkPath,
    /// Delete a folder with everything in it.
    #[serde(default)]
    recursive: bool,
    /// Do not fail when there is nothing to delete.
    #[serde(default)]
    force: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The path that was given.
    path: String,
    /// False when there was nothing to delete.
    removed: bool,
    /// How many files and folders are gone.
    count: u64,
    /// True when fs_undo can bring it back.
    undo: bool,
    /// What was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

pub struct Delete;

impl Tool for Delete {
    const NAME: &'static str = "fs_delete";
    const TITLE: &'static str = "Delete files and folders";
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
                    .hint("Name what is in it; fs_list shows what that is."));
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
                    "Deleted the folder `{path}`, {count} entries in all; fs_undo cannot bring them back."
                ),
            )
        }
        EntryKind::Folder => {
            refuse_full(fs, place)?;
            fs.remove(place)?;
            (1, format!("Deleted the empty folder `{path}`."))
        }
        EntryKind::Symlink | EntryKind::Other => {
            fs.remove(place)?;
            (1, format!("Deleted the link or special file `{path}`; what a link points to is untouched."))
        }
        EntryKind::File => {
            let gone = fs.change(vec![Change::Remove { place: place.clone(), if_hash: None }])?;
            undo = gone.iter().all(|gone| gone.undo);
            let back = if undo { "fs_undo brings it back" } else { "it cannot be brought back" };
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
    Err(ToolError::invalid(format!("`{path}` is a folder with {inside} entries; nothing was deleted."))
        .hint(format!("To delete it all call fs_delete {{\"path\": \"{path}\", \"recursive\": true}}.")))
}
