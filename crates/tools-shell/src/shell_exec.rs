//! `shell_exec`.

use crate::run_command::{CommandRequest, CommandResult, Grants, REPLY_OVERHEAD_BYTES};
use crate::shell::Shell;
use crate::shell_defaults;
use octo_toolkit::{CallContext, Effect, Example, ModelText, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

/// Runs a command line with bash (or sh) in the workspace, in a sandbox, and returns output and exit code, or the
/// output up to the timeout. Prefer run_tests and run_build for those, shell_start for servers and prompts, and fs_*
/// tools for files.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Command line for the shell; pipes, redirections and several lines work.
    command: String,
    /// Folder to run in, relative to the workspace.
    #[serde(default = "shell_defaults::current_dir")]
    cwd: WorkPath,
    /// Additional environment variables; the hub's own are not passed on.
    #[serde(default)]
    env: Option<BTreeMap<String, String>>,
    /// Timeout in seconds, which kills all its processes; the operator sets the maximum, usually 600.
    #[serde(default = "shell_defaults::exec_timeout_s")]
    timeout_s: u64,
    /// Maximum bytes of stdout and stderr together; longer output is returned as head and tail, with a handle.
    #[serde(default = "shell_defaults::max_output_bytes")]
    max_output_bytes: u64,
    /// False disables the network; true cannot enable it against the operator's settings.
    #[serde(default)]
    network: Option<bool>,
    /// Text for standard input; empty by default.
    #[serde(default)]
    stdin: Option<String>,
}

pub struct ShellExec(pub Shell);

impl Tool for ShellExec {
    const NAME: &'static str = "shell_exec";
    const TITLE: &'static str = "Run a command";
    const KEYWORDS: &'static str = "run command terminal bash script execute install program python";
    const REQUESTS: &'static [&'static str] = &[
        "run a bash one-liner",
        "execute python script.py and show what it prints",
        "install the npm packages",
        "count the lines of all logs with a pipe",
        "convert the video with ffmpeg",
        "unzip the archive on the command line",
        "run a command with an environment variable and input",
    ];
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = CommandResult;
    type Grants = Grants;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Count the lines of a file", json!({"command": "wc -l notes.txt"})),
            Example::new(
                "Use a pipe and a variable, with a time limit",
                json!({"command": "sort notes.txt | head -n $COUNT", "env": {"COUNT": "2"}, "timeout_s": 10}),
            ),
            Example::new("Give it input", json!({"command": "sort -n", "stdin": "10\n9\n"})),
        ]
    }

    fn text(output: &CommandResult) -> Option<String> {
        output.write_text(ModelText::new()).finish()
    }

    async fn run(&self, input: Input, grants: Grants, cx: &CallContext) -> Result<CommandResult, ToolError> {
        let order = CommandRequest {
            command: input.command,
            cwd: input.cwd,
            env: input.env.unwrap_or_default(),
            timeout_s: input.timeout_s,
            max_output_bytes: input.max_output_bytes,
            network: input.network,
            reply_budget: cx.reply.remaining_after(REPLY_OVERHEAD_BYTES),
            stdin: input.stdin,
            wants_full_output: false,
        };
        Ok(self.0.run(order, &grants, cx).await?.result)
    }
}
