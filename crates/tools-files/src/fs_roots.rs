//! `fs_roots`.

use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Fs, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists the folders that file tools may access, and which of them are read-only; everything else is inaccessible.
/// Prefer fs_list or fs_tree to see their contents.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The roots; relative paths of all tools start at the default one.
    roots: Vec<Root>,
}

#[derive(Serialize, JsonSchema)]
pub struct Root {
    /// Name in the settings.
    name: String,
    /// Absolute path; paths beneath it can be given to all file tools.
    path: String,
    /// Path of the same folder outside the hub's machine or container; accepted as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outside: Option<String>,
    /// False if nothing in it can be changed.
    writable: bool,
    /// Whether relative paths start here.
    default: bool,
}

pub struct Roots;

impl Tool for Roots {
    const NAME: &'static str = "fs_roots";
    const TITLE: &'static str = "List the workspace's roots";
    const KEYWORDS: &'static str = "workspace allowed directories permitted locations";
    const REQUESTS: &'static [&'static str] = &[
        "which directories am i allowed to touch",
        "where is the workspace on disk",
        "is this mount read-only for file access",
        "what is my base path for relative filenames",
        "find out which places outside are off limits",
        "absolute path of the shared project folder",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Read>;

    fn examples() -> Vec<Example> {
        vec![Example::new("What may be touched", json!({}))]
    }

    async fn run(&self, _input: Input, fs: Fs<Read>, _cx: &CallContext) -> Result<Output, ToolError> {
        let roots = fs.workspace().roots().iter().enumerate().map(|(at, root)| Root {
            name: root.name.clone(),
            path: root.path.to_string_lossy().into_owned(),
            outside: root.alias_path.as_ref().map(|path| path.to_string_lossy().into_owned()),
            writable: root.writable,
            default: at == 0,
        });
        let roots: Vec<Root> = roots.collect();
        if roots.is_empty() { Err(fs.workspace().no_root()) } else { Ok(Output { roots }) }
    }
}
