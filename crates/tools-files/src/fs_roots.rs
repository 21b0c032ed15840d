//! `fs_roots`.

use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Fs, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists the folders that the file tools may touch, and which of them are read-only; everything else is out of reach.
/// Prefer fs_list or fs_tree to see what is inside.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The roots; relative paths of all tools begin at the default one.
    roots: Vec<Root>,
}

#[derive(Serialize, JsonSchema)]
pub struct Root {
    /// What the settings call it.
    name: String,
    /// Absolute path; paths beneath it can be given to all file tools.
    path: String,
    /// The same folder as it is called outside of the hub's machine or container; understood as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outside: Option<String>,
    /// False when nothing in it can be changed.
    writable: bool,
    /// Whether relative paths begin here.
    default: bool,
}

pub struct Roots;

impl Tool for Roots {
    const NAME: &'static str = "fs_roots";
    const TITLE: &'static str = "List the workspace's roots";
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
