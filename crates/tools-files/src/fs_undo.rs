//! `fs_undo`.

use crate::content::content_hash;
use crate::fs_edit;
use octo_toolkit::fs::{UndoResult, Write};
use octo_toolkit::{CallContext, Effect, Example, Fs, Kind, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Undoes the last change that these tools made to a file, including a delete or rename; refused if it has been changed
/// otherwise since. Prefer fs_edit to correct a part.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File whose last change to undo, relative to the workspace.
    path: WorkPath,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The file.
    path: String,
    /// False if no change of the file is stored.
    undone: bool,
    /// Summary in a sentence.
    message: String,
    /// True if the file was removed, because the change had created it.
    removed: bool,
    /// SHA-256 of the current content, for if_hash of a later change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

pub struct Undo;

impl Tool for Undo {
    const NAME: &'static str = "fs_undo";
    const TITLE: &'static str = "Undo the last change of a file";
    const KEYWORDS: &'static str = "revert restore roll back change mistake";
    const REQUESTS: &'static [&'static str] = &[
        "revert my last edit of the file",
        "i overwrote notes.txt by mistake, bring the old text back",
        "restore the file that i just deleted",
        "take back the rename from a moment ago",
        "put main.rs into the state before my latest write",
        "that change was wrong, roll the file back",
    ];
    const EFFECT: Effect = Effect::destroys();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Write>;

    fn examples() -> Vec<Example> {
        vec![Example::new("Undo the last write", json!({"path": "notes.txt"}))]
    }

    async fn run(&self, input: Input, fs: Fs<Write>, _cx: &CallContext) -> Result<Output, ToolError> {
        fs.run(move |fs| {
            let place = fs.place(&input.path)?;
            match fs.undo(&place) {
                Ok(undone) => Ok(to_output(fs, &undone)),
                Err(error) if error.kind == Kind::NotFound => {
                    let message = error.text();
                    Ok(Output { path: place.display(), undone: false, message, removed: false, hash: None })
                }
                Err(error) => Err(error),
            }
        })
        .await
    }
}

fn to_output(fs: &Fs<Write>, undone: &UndoResult) -> Output {
    let path = undone.place.display();
    let now = if undone.removed { None } else { fs.read(&undone.place, fs_edit::MAX_EDIT_BYTES).ok() };
    let mut message = sentence(undone);
    for other in &undone.others {
        message.push(' ');
        message.push_str(&sentence(other));
    }
    let hash = now.map(|(bytes, _)| content_hash::sha256_hex(&bytes));
    Output { path, undone: true, message, removed: undone.removed, hash }
}

fn sentence(undone: &UndoResult) -> String {
    let path = undone.place.display();
    match undone.removed {
        true => format!("The change had created {path}; it was removed."),
        false => format!("Restored {path} to its state before the last change."),
    }
}
