//! `run_build`.

use crate::diagnostics::{self, Diagnostic};
use crate::run_command::{CommandRequest, CommandResult, Grants, REPLY_OVERHEAD_BYTES};
use crate::shell::Shell;
use crate::shell_defaults;
use octo_toolkit::reply_budget::count_fitting;
use octo_toolkit::{CallContext, Effect, Example, ModelText, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// Runs a build and returns whether it succeeded, with errors and warnings by file and line, from the output of
/// cargo, gcc, clang, tsc, go, javac, make or Python; else exit code and output. Prefer run_tests for tests.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Build command line, such as cargo build or make.
    command: String,
    /// Folder to run in, relative to the workspace.
    #[serde(default = "shell_defaults::current_dir")]
    cwd: WorkPath,
    /// Timeout in seconds; the operator sets the maximum, usually 600.
    #[serde(default = "shell_defaults::build_timeout_s")]
    timeout_s: u64,
    /// Additional environment variables.
    #[serde(default)]
    env: Option<BTreeMap<String, String>>,
    /// Maximum bytes of output besides errors and warnings.
    #[serde(default = "shell_defaults::report_output_bytes")]
    max_output_bytes: u64,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// True if the exit code was 0.
    succeeded: bool,
    /// The first fifty errors.
    errors: Vec<Diagnostic>,
    /// The first fifty warnings.
    warnings: Vec<Diagnostic>,
    /// Number of further errors and warnings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left_out: Option<u64>,
    #[serde(flatten)]
    result: CommandResult,
}

pub struct RunBuild(pub Shell);

impl Tool for RunBuild {
    const NAME: &'static str = "run_build";
    const TITLE: &'static str = "Run a build";
    const KEYWORDS: &'static str = "compile make bundle cargo npm errors";
    const REQUESTS: &'static [&'static str] = &[
        "does the project compile",
        "compile it and list the errors with their lines",
        "make the release binary",
        "are there compiler warnings after my edit",
        "type-check the typescript code with tsc",
        "build the java classes",
        "run cargo check or cargo clippy",
    ];
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Grants;

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "Check that a file is there",
            json!({"command": "test -s src/main.rs && echo built"}),
        )]
    }

    fn text(output: &Output) -> Option<String> {
        let text = ModelText::new().line(if output.succeeded { "succeeded" } else { "failed" });
        let text = output.errors.iter().fold(text, |text, error| text.item("error: ", &error.line()));
        let text = output.warnings.iter().fold(text, |text, warning| text.item("warning: ", &warning.line()));
        let text = text.field_if("left out", output.left_out);
        output.result.write_text(text).finish()
    }

    async fn run(&self, input: Input, grants: Grants, cx: &CallContext) -> Result<Output, ToolError> {
        let order = CommandRequest {
            command: input.command,
            cwd: input.cwd,
            env: input.env.unwrap_or_default(),
            timeout_s: input.timeout_s,
            max_output_bytes: input.max_output_bytes,
            network: None,
            // Half of the reply is for the report.
            reply_budget: cx.reply.remaining_after(REPLY_OVERHEAD_BYTES) / 2,
            stdin: None,
            wants_full_output: true,
        };
        let ran = self.0.run(order, &grants, cx).await?;
        let mut found = diagnostics::read(&ran.full_output.0, &ran.full_output.1);
        for list in [&mut found.errors, &mut found.warnings] {
            let fit = count_fitting(list, cx.reply.remaining_after(REPLY_OVERHEAD_BYTES) / 4)?.max(1);
            found.omitted += list.len().saturating_sub(fit);
            list.truncate(fit);
        }
        Ok(Output {
            succeeded: ran.result.exit_code == 0 && !ran.result.timed_out,
            errors: found.errors,
            warnings: found.warnings,
            left_out: Some(found.omitted as u64).filter(|more| *more > 0),
            result: ran.result,
        })
    }
}
