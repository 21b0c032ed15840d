//! `octoprox workflow`: validates, runs and resumes workflows.

mod render_runs;
mod workflow_client;

use crate::app::{App, StartServers};
use crate::app_context::{
    AppContext, AppMode, block_on_current_thread, block_on_multi_thread, load_settings,
};
use crate::app_error::AppError;
use crate::cli::tool_arguments;
use crate::settings::Flags;
use crate::settings::state_dir;
use crate::stores::stores;
use crate::telemetry::LogMode;
use crate::terminal::console;
use clap::{Args, Subcommand};
use octo_ports::Runs;
use serde_json::{Value, json};
use std::sync::Arc;
use workflow_client::WorkflowClient;

/// Validate, run and resume workflows: files with steps that call tools.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox workflow validate flows/report.yaml
  octoprox workflow run flows/report.yaml day=2026-11-14
  octoprox workflow list
  octoprox workflow resume w_k3… --skip post")]
pub struct Workflow {
    #[command(subcommand)]
    command: Command,
    /// Print as JSON
    #[arg(long, global = true)]
    json: bool,
    /// Use the names and rules of this profile
    #[arg(long, global = true, value_name = "NAME", default_value = "", hide_default_value = true)]
    profile: String,
}

#[derive(Subcommand)]
enum Command {
    Validate(Validate),
    Run(Run),
    List(List),
    Show(Show),
    Resume(Resume),
    Schema(Schema),
}

/// Validate a workflow against the available tools. Exit with code 2 if it cannot run.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox workflow validate flows/report.yaml")]
struct Validate {
    /// Workflow file in the workspace
    file: String,
}

/// Run a workflow. Progress goes to standard error. Exit codes are those of `octoprox call`.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox workflow run flows/report.yaml
  octoprox workflow run flows/digest.yaml repo=octo/prox limit=5 --json")]
struct Run {
    /// Workflow file in the workspace
    file: String,
    /// Parameters as name=value; @file reads the value from a file
    #[arg(value_name = "NAME=VALUE")]
    pairs: Vec<String>,
}

/// List the newest runs.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox workflow list -n 5")]
struct List {
    /// Number of runs to list
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,
}

/// Show a run: its steps, errors and outputs.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox workflow show w_k3…")]
struct Show {
    /// Run id, from `octoprox workflow list`
    run: String,
}

/// Resume a run that was interrupted, was cancelled or has failed. Completed steps are not repeated.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox workflow resume w_k3…
  octoprox workflow resume w_k3… --redo fetch --skip 'post[2]'")]
struct Resume {
    /// Run id, from `octoprox workflow list`
    run: String,
    /// Failed or interrupted step to run again
    #[arg(long, value_name = "STEP")]
    redo: Vec<String>,
    /// Failed or interrupted step to skip: it counts as done
    #[arg(long, value_name = "STEP")]
    skip: Vec<String>,
}

/// Print the JSON Schema of workflows, for editors.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox workflow schema > workflow.schema.json")]
struct Schema {}

impl Workflow {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        match &self.command {
            Command::Schema(_) => Ok(console::print(octo_flow::SCHEMA)?),
            Command::List(list) => self.inspect_runs(flags, async |runs| {
                let all = runs.list(&octo_model::Caller::local(), list.limit).await?;
                Ok(if self.json { render_runs::runs_json(&all) } else { render_runs::render_runs(&all) })
            }),
            Command::Show(show) => self.inspect_runs(flags, async |runs| {
                let run = runs.get(&octo_model::Caller::local(), &show.run).await?;
                Ok(if self.json { render_runs::run_json(&run) } else { render_runs::render_run(&run) })
            }),
            _ => self.call(flags),
        }
    }

    /// Runs a command that only reads stored runs.
    fn inspect_runs(
        &self,
        flags: &Flags,
        say: impl AsyncFnOnce(Arc<dyn Runs>) -> Result<String, AppError>,
    ) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        state_dir(loaded.settings.state_dir.as_ref())?;
        let runs = stores(&loaded.settings)?.runs;
        block_on_current_thread(async { Ok(console::print(&say(runs).await?)?) })
    }

    fn call(&self, flags: &Flags) -> Result<(), AppError> {
        block_on_multi_thread(async {
            let session = AppContext::start(load_settings(flags)?, LogMode::Command, AppMode::CallTools)?;
            let assembly = App::build(&session, &StartServers::All)?;
            let caller = WorkflowClient::new(&assembly, &self.profile).await;
            let done = match &self.command {
                Command::Validate(command) => self.validate(&caller, &command.file).await,
                Command::Run(command) => self.run_workflow(&caller, command).await,
                Command::Resume(command) => self.resume(&caller, command).await,
                _ => Ok(()),
            };
            assembly.shutdown().await;
            session.shutdown().await;
            done
        })
    }

    async fn validate(&self, caller: &WorkflowClient<'_>, file: &str) -> Result<(), AppError> {
        let answer = caller.call_tool("workflow_validate", json!({"path": file})).await?;
        let text = if self.json { answer.to_string() } else { render_runs::render_check(file, &answer) };
        console::print(&text)?;
        if answer.get("valid") == Some(&Value::Bool(true)) { Ok(()) } else { Err(AppError::silent(2)) }
    }

    async fn run_workflow(&self, caller: &WorkflowClient<'_>, run: &Run) -> Result<(), AppError> {
        let checked = caller.call_tool("workflow_validate", json!({"path": run.file})).await?;
        if checked.get("valid") != Some(&Value::Bool(true)) {
            if self.json {
                console::print(&checked.to_string())?;
            } else {
                console::print_err(render_runs::render_check(&run.file, &checked).trim_end());
            }
            return Err(AppError::silent(2));
        }
        let schema = checked.get("params").cloned().unwrap_or_default();
        let params: Value =
            tool_arguments::parse_arguments(None, &run.pairs, &schema)?.to().unwrap_or_default();
        let answer = caller.run_to_end(json!({"path": run.file, "params": params})).await?;
        self.print_result(&answer)
    }

    async fn resume(&self, caller: &WorkflowClient<'_>, resume: &Resume) -> Result<(), AppError> {
        let path = caller.path_of(&resume.run).await?;
        let asked = json!({
            "path": path, "run_id": resume.run, "redo": resume.redo, "skip": resume.skip, "resume": true,
        });
        self.print_result(&caller.run_to_end(asked).await?)
    }

    fn print_result(&self, answer: &Value) -> Result<(), AppError> {
        if self.json {
            console::print(&answer.to_string())?;
        } else {
            console::print_err(render_runs::render_summary(answer).trim_end());
            if let Some(outputs) = answer.get("outputs").filter(|outputs| !render_runs::is_empty(outputs)) {
                console::print(&serde_json::to_string_pretty(outputs).unwrap_or_default())?;
            }
        }
        match render_runs::run_exit_code(answer) {
            0 => Ok(()),
            code => Err(AppError::silent(code)),
        }
    }
}
