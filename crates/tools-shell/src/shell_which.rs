//! `shell_which`.

use octo_toolkit::{CallContext, Effect, Example, Exec, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Looks up a program in the search path of commands; returns its path, or that it is not installed. Prefer it to
/// trying a command and reading the error.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name of the program, without a path.
    command: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Whether commands can call it by this name.
    found: bool,
    /// Its path, if found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

pub struct Which;

impl Tool for Which {
    const NAME: &'static str = "shell_which";
    const TITLE: &'static str = "Find a program";
    const KEYWORDS: &'static str = "installed program available binary version path";
    const REQUESTS: &'static [&'static str] = &[
        "is docker installed",
        "where is the python binary",
        "do we have node on this machine",
        "check that ffmpeg is available before using it",
        "path of the gcc executable",
        "can i use jq here or is it missing",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Exec;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Whether git is installed", json!({"command": "git"})),
            Example::new("A program that is not there", json!({"command": "no-such-program"}))
                .with_output(json!({"found": false})),
        ]
    }

    async fn run(&self, input: Input, exec: Exec, _cx: &CallContext) -> Result<Output, ToolError> {
        let name = input.command.trim();
        if name.is_empty() || name.contains(['/', '\0']) || name.contains(char::is_whitespace) {
            return Err(ToolError::invalid("Invalid program name.")
                .hint("Use the name alone, such as git, without directories and arguments."));
        }
        let path = exec.which(name).map(|path| path.to_string_lossy().into_owned());
        Ok(Output { found: path.is_some(), path })
    }
}
