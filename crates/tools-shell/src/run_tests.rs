//! `run_tests`.

use crate::diagnostics::{self, Diagnostic};
use crate::run_command::{CommandRequest, CommandResult, Grants, REPLY_OVERHEAD_BYTES};
use crate::shell::Shell;
use crate::shell_defaults;
use crate::test_report::{self, Failure, TestReport};
use octo_toolkit::fs::Read;
use octo_toolkit::reply_budget::count_fitting;
use octo_toolkit::{CallContext, Effect, Example, Fs, Kind, ModelText, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// Maximum bytes of a report file.
const MAX_REPORT_BYTES: u64 = 16 << 20;

/// Runs tests and returns counts and failures with file and line, from the output of cargo, pytest, go, jest, vitest,
/// mocha, node, unittest or TAP, or from a JUnit file; else exit code and output. Prefer shell_exec for other
/// commands.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Test command line, such as cargo test or pytest -q.
    command: String,
    /// Folder to run in, relative to the workspace.
    #[serde(default = "shell_defaults::current_dir")]
    cwd: WorkPath,
    /// Timeout in seconds; the operator sets the maximum, usually 600.
    #[serde(default = "shell_defaults::test_timeout_s")]
    timeout_s: u64,
    /// Additional environment variables.
    #[serde(default)]
    env: Option<BTreeMap<String, String>>,
    /// JUnit XML file that the command writes, relative to the workspace; parsed instead of the output.
    #[serde(default)]
    junit: Option<WorkPath>,
    /// Maximum bytes of output besides the report.
    #[serde(default = "shell_defaults::report_output_bytes")]
    max_output_bytes: u64,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// True if the exit code was 0 and no test failed.
    passed: bool,
    /// Test counts.
    summary: Summary,
    /// The first fifty failed tests.
    failures: Vec<Failure>,
    /// Number of further failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failures_left_out: Option<u64>,
    /// Compiler errors, if no test could run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Diagnostic>,
    #[serde(flatten)]
    result: CommandResult,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Summary {
    /// Framework of the output, such as pytest; unknown if it was not recognized.
    framework: String,
    /// Tests that passed, if the framework reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    passed: Option<u64>,
    /// Tests that failed or could not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<u64>,
    /// Skipped tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    /// All tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// Seconds measured by the framework.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duration: Option<f64>,
}

impl Summary {
    fn line(&self, passed: bool) -> String {
        let counts = [
            ("passed", self.passed),
            ("failed", self.failed),
            ("skipped", self.skipped),
            ("total", self.total),
        ];
        let counts = counts.iter().filter_map(|(name, count)| count.map(|count| format!("{count} {name}")));
        let seconds = self.duration.map(|seconds| format!("{seconds} s"));
        let verdict = if passed { "passed" } else { "failed" };
        let all: Vec<String> =
            counts.chain(seconds).chain([format!("framework {}", self.framework)]).collect();
        format!("{verdict}: {}", all.join(", "))
    }

    fn from_report(report: Option<&TestReport>) -> Self {
        Self {
            framework: report.map_or("unknown", |report| report.framework).to_owned(),
            passed: report.and_then(|report| report.passed),
            failed: report.map(|report| report.failed),
            skipped: report.map(|report| report.skipped),
            total: report.and_then(TestReport::total),
            duration: report.and_then(|report| report.seconds),
        }
    }
}

pub struct RunTests(pub Shell);

impl Tool for RunTests {
    const NAME: &'static str = "run_tests";
    const TITLE: &'static str = "Run tests";
    const KEYWORDS: &'static str = "unit test suite pytest jest check failing verify";
    const REQUESTS: &'static [&'static str] = &[
        "do the unit tests pass",
        "run pytest and tell me what fails",
        "check that my fix did not break anything",
        "which test cases are red, with file and line",
        "execute the jest suite of the frontend",
        "cargo test for one crate",
        "verify the change with the specs",
    ];
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Grants;

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "A test in TAP, as many runners write it",
            json!({"command": "printf '1..1\\n'; grep -q beta notes.txt && echo 'ok 1 - beta is there'"}),
        )]
    }

    fn text(output: &Output) -> Option<String> {
        let text = ModelText::new().line(output.summary.line(output.passed));
        let text = output.failures.iter().fold(text, |text, failure| {
            let Failure { name, file, line, message } = failure;
            let line = line.map_or(String::new(), |line| format!(":{line}"));
            let place = file.as_ref().map_or(String::new(), |file| format!(" ({file}{line})"));
            text.line(format_args!("failure: {name}{place}")).item("  ", message)
        });
        let text = text.field_if("further failures", output.failures_left_out);
        let text = output.errors.iter().fold(text, |text, error| text.item("error: ", &error.line()));
        output.result.write_text(text).finish()
    }

    async fn run(&self, input: Input, grants: Grants, cx: &CallContext) -> Result<Output, ToolError> {
        let before = match &input.junit {
            Some(path) => last_modified(&grants.1, path).await?,
            None => None,
        };
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
        let mut ran = self.0.run(order, &grants, cx).await?;
        let (stdout, stderr) = &ran.full_output;
        let report = match &input.junit {
            Some(path) => from_file(&grants.1, path, before, &mut ran.result).await?,
            None => None,
        };
        let report = report.or_else(|| test_report::read(stdout, stderr));
        let failed = report.as_ref().map_or(0, |report| report.failed);
        let errors = match &report {
            None if ran.result.exit_code != 0 => diagnostics::read(stdout, stderr).errors,
            _ => Vec::new(),
        };
        let mut more = report.as_ref().map_or(0, |report| report.omitted);
        let mut failures = report.as_ref().map(|report| report.failures.clone()).unwrap_or_default();
        let fit = count_fitting(&failures, cx.reply.remaining_after(REPLY_OVERHEAD_BYTES) / 2)?.max(1);
        more += failures.len().saturating_sub(fit);
        failures.truncate(fit);
        Ok(Output {
            passed: ran.result.exit_code == 0 && !ran.result.timed_out && failed == 0,
            summary: Summary::from_report(report.as_ref()),
            failures,
            failures_left_out: Some(more as u64).filter(|more| *more > 0),
            errors,
            result: ran.result,
        })
    }
}

/// Modification time of a file; `None` if it does not exist yet.
async fn last_modified(fs: &Fs<Read>, path: &WorkPath) -> Result<Option<jiff::Timestamp>, ToolError> {
    let place = fs.place(path)?;
    fs.run(move |fs| match fs.stat(&place) {
        Ok(stat) => Ok(Some(stat.modified)),
        Err(error) if error.kind == Kind::NotFound => Ok(None),
        Err(error) => Err(error),
    })
    .await
}

/// The report in a file, unless the file is older than the run.
async fn from_file(
    fs: &Fs<Read>,
    path: &WorkPath,
    before: Option<jiff::Timestamp>,
    ended: &mut CommandResult,
) -> Result<Option<TestReport>, ToolError> {
    let place = fs.place(path)?;
    let read = fs.run(move |fs| fs.read(&place, MAX_REPORT_BYTES)).await;
    let why = match read {
        Ok((_, stat)) if Some(stat.modified) == before => "was not written by this run",
        Ok((bytes, _)) => match test_report::junit::read(&String::from_utf8_lossy(&bytes)) {
            Some(report) => return Ok(Some(report)),
            None => "contains no JUnit report",
        },
        Err(_) => "could not be read",
    };
    let note = format!("{path} {why}; the output was parsed instead.");
    ended.note = Some(ended.note.take().map_or_else(|| note.clone(), |said| format!("{said} {note}")));
    Ok(None)
}
