//! `octoprox flow`: workflows on the command line.

mod called;
mod told;

use super::arguments;
use super::audit::state_dir;
use super::failure::Failure;
use super::out;
use super::session::{Purpose, Session, alone, settings, together};
use crate::assemble::{Assembly, Reach};
use crate::settings::Flags;
use crate::telemetry::Talk;
use crate::toolboxes::durability;
use called::Caller;
use clap::{Args, Subcommand};
use octo_hub::Runs;
use octo_store::SqliteRunStore;
use serde_json::{Value, json};

/// Validate, run and resume workflows: files with steps that call tools.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox flow validate flows/report.yaml
  octoprox flow run flows/report.yaml day=2026-11-14
  octoprox flow list
  octoprox flow resume w_k3… --skip post")]
pub struct Flow {
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
#[command(after_help = "Example:\n  octoprox flow validate flows/report.yaml")]
struct Validate {
    /// Workflow file in the workspace
    file: String,
}

/// Run a workflow. Progress goes to standard error. Exit codes are those of `octoprox call`.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox flow run flows/report.yaml
  octoprox flow run flows/digest.yaml repo=octo/prox limit=5 --json")]
struct Run {
    /// Workflow file in the workspace
    file: String,
    /// Parameters as name=value; @file reads the value from a file
    #[arg(value_name = "NAME=VALUE")]
    pairs: Vec<String>,
}

/// List the newest runs.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox flow list -n 5")]
struct List {
    /// Number of runs to list
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    most: usize,
}

/// Show a run: its steps, errors and outputs.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox flow show w_k3…")]
struct Show {
    /// Run id, from `octoprox flow list`
    run: String,
}

/// Resume a run that was interrupted, was cancelled or has failed. Completed steps are not repeated.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox flow resume w_k3…
  octoprox flow resume w_k3… --redo fetch --skip 'post[2]'")]
struct Resume {
    /// Run id, from `octoprox flow list`
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
#[command(after_help = "Example:\n  octoprox flow schema > workflow.schema.json")]
struct Schema {}

impl Flow {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        match &self.command {
            Command::Schema(_) => Ok(out::data(octo_flow::SCHEMA)?),
            Command::List(list) => self.look(flags, async |runs| {
                let all = runs.list(&octo_model::Caller::local(), list.most).await?;
                Ok(if self.json { told::runs_json(&all) } else { told::runs(&all) })
            }),
            Command::Show(show) => self.look(flags, async |runs| {
                let run = runs.get(&octo_model::Caller::local(), &show.run).await?;
                Ok(if self.json { told::run_json(&run) } else { told::run(&run) })
            }),
            _ => self.call(flags),
        }
    }

    /// For commands that only look at what is kept.
    fn look(
        &self,
        flags: &Flags,
        say: impl AsyncFnOnce(SqliteRunStore) -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        let loaded = settings(flags)?;
        let folder = state_dir(loaded.settings.state_dir.as_ref())?;
        let runs = SqliteRunStore::new(&folder, durability(&loaded.settings));
        alone(async { Ok(out::data(&say(runs).await?)?) })
    }

    fn call(&self, flags: &Flags) -> Result<(), Failure> {
        together(async {
            let session = Session::begin(settings(flags)?, Talk::Person, Purpose::Calls)?;
            let assembly = Assembly::build(&session, &Reach::All)?;
            let caller = Caller::new(&assembly, &self.profile).await;
            let done = match &self.command {
                Command::Validate(command) => self.validate(&caller, &command.file).await,
                Command::Run(command) => self.begin(&caller, command).await,
                Command::Resume(command) => self.resume(&caller, command).await,
                _ => Ok(()),
            };
            assembly.end().await;
            session.end().await;
            done
        })
    }

    async fn validate(&self, caller: &Caller<'_>, file: &str) -> Result<(), Failure> {
        let answer = caller.tool("workflow_validate", json!({"path": file})).await?;
        let text = if self.json { answer.to_string() } else { told::checked(file, &answer) };
        out::data(&text)?;
        if answer.get("valid") == Some(&Value::Bool(true)) { Ok(()) } else { Err(Failure::silent(2)) }
    }

    async fn begin(&self, caller: &Caller<'_>, run: &Run) -> Result<(), Failure> {
        let checked = caller.tool("workflow_validate", json!({"path": run.file})).await?;
        if checked.get("valid") != Some(&Value::Bool(true)) {
            out::talk(told::checked(&run.file, &checked).trim_end());
            return Err(Failure::silent(2));
        }
        let schema = checked.get("params").cloned().unwrap_or_default();
        let params: Value = arguments::read(None, &run.pairs, &schema)?.to().unwrap_or_default();
        let answer = caller.run(json!({"path": run.file, "params": params})).await?;
        self.ended(&answer)
    }

    async fn resume(&self, caller: &Caller<'_>, resume: &Resume) -> Result<(), Failure> {
        let path = caller.path_of(&resume.run).await?;
        let asked = json!({
            "path": path, "run_id": resume.run, "redo": resume.redo, "skip": resume.skip, "resume": true,
        });
        self.ended(&caller.run(asked).await?)
    }

    fn ended(&self, answer: &Value) -> Result<(), Failure> {
        if self.json {
            out::data(&answer.to_string())?;
        } else {
            out::talk(told::summary(answer).trim_end());
            if let Some(outputs) = answer.get("outputs").filter(|outputs| !told::is_empty(outputs)) {
                out::data(&serde_json::to_string_pretty(outputs).unwrap_or_default())?;
            }
        }
        match told::exit_code(answer) {
            0 => Ok(()),
            code => Err(Failure::silent(code)),
        }
    }
}
