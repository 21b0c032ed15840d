//! `octoprox call`: one call through the hub.

use super::arguments;
use super::envelope::{MORE_INPUT, USE_MCP, asks_for_more, envelope, said};
use super::failure::{Failure, code};
use super::manual::manual;
use super::out;
use super::readable::{notice, readable};
use super::saved::enclosed;
use super::session::{Purpose, Session, alone, settings};
use super::tools::natives;
use super::width::columns;
use crate::assemble::{Assembly, Reach};
use crate::settings::Flags;
use crate::telemetry::Talk;
use clap::Args;
use octo_hub::{CallOutcome, Entry, Hub, ListKind, Request};
use octo_model::{Caller, Frontend, JsonObject, Operation, ToolError};
use octo_toolkit::NoPeer;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Longest that the first listing of a server is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Call a tool and print its result. Exit codes: 2 invalid arguments, 3 not found, 4 denied, 5 timeout, 6 unavailable,
/// 130 cancelled, 1 any other error.
#[derive(Args)]
#[command(disable_help_flag = true, override_usage = "octoprox call [OPTIONS] <NAME> [NAME=VALUE]...")]
#[command(after_help = "Examples:
  octoprox call read_page --help
  octoprox call time_now timezone=Europe/Berlin
  octoprox call time_parse text='next friday 5pm' --json
  octoprox call notion__search --args '{\"query\": \"plan\"}'
  octoprox call fs_write_text path=notes.md content=@notes.md")]
pub struct Call {
    /// Name of the tool, as `octoprox tools` lists it
    #[arg(required_unless_present = "help")]
    name: Option<String>,
    /// Arguments as name=value; @file reads the value from a file
    #[arg(value_name = "NAME=VALUE")]
    pairs: Vec<String>,
    /// Arguments as a JSON object; - reads it from standard input
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Print the whole reply as JSON: {success, result, error, metadata, execution_time_ms}
    #[arg(long)]
    json: bool,
    /// Save the image, audio or file in the reply
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Use the names and rules of this profile
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    profile: String,
    /// Print the parameters of the tool; without a name, print this help
    #[arg(short, long)]
    help: bool,
}

impl Call {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        let Some(name) = &self.name else {
            return Ok(out::data(&super::help("call"))?);
        };
        alone(async {
            let purpose = if self.help { Purpose::Looks } else { Purpose::Calls };
            let session = Session::begin(settings(flags)?, Talk::Person, purpose)?;
            let reach = Reach::of(&session.loaded.settings, name, &self.profile);
            let assembly = Assembly::build(&session, &reach)?;
            let done = match self.help {
                true => self.explain(name, &assembly.hub).await,
                false => self.call(name, &assembly.hub).await,
            };
            assembly.end().await;
            session.end().await;
            done
        })
    }

    /// Says what a tool takes, also one that is switched off.
    async fn explain(&self, name: &str, hub: &Hub) -> Result<(), Failure> {
        let native = natives().remove(name);
        let tool = match (self.entry(name, hub).await?, &native) {
            (Some(entry), _) => entry.item.members.clone(),
            (None, Some(native)) => native.definition.clone(),
            (None, None) => {
                let error = ToolError::not_found(format!("There is no tool `{name}`."));
                return Err(error.hint("`octoprox tools --all` lists what there is.").into());
            }
        };
        let examples = native.map(|native| native.examples).unwrap_or_default();
        Ok(out::data(&manual(name, &tool, &examples, columns()))?)
    }

    async fn call(&self, name: &str, hub: &Hub) -> Result<(), Failure> {
        let entry = self.entry(name, hub).await?;
        let schema = entry.as_ref().and_then(|entry| entry.item.members.get("inputSchema")?.to().ok());
        let arguments = arguments::read(self.args.as_deref(), &self.pairs, &schema.unwrap_or_default())?;
        let cancel = CancellationToken::new();
        let request = Request {
            op: Operation::tool(name.to_owned(), arguments),
            caller: Arc::new(Caller::local()),
            frontend: Frontend::Cli,
            profile: self.profile.clone(),
            peer: Arc::new(NoPeer),
            cancel: cancel.clone(),
            timeout: None,
            trace: None,
        };
        let mut call = std::pin::pin!(hub.call(request));
        let called = tokio::select! {
            called = &mut call => called,
            _ = tokio::signal::ctrl_c() => {
                cancel.cancel();
                call.await
            }
        };
        self.print(&called, name, entry.as_ref())
    }

    /// The tool, once the servers have listed theirs. One that is not there is refused by the call itself, for the record.
    async fn entry(&self, name: &str, hub: &Hub) -> Result<Option<Entry>, Failure> {
        let find =
            |hub: &Hub| Ok::<_, Failure>(hub.view(&self.profile)?.by_name(ListKind::Tools, name).cloned());
        if let Some(entry) = find(hub)? {
            return Ok(Some(entry));
        }
        hub.wait_until_listed(&self.profile, PATIENCE).await;
        find(hub)
    }

    fn print(&self, called: &CallOutcome, name: &str, entry: Option<&Entry>) -> Result<(), Failure> {
        if self.json {
            out::data(envelope(called, name, entry).as_str())?;
        }
        match &called.outcome {
            Err(error) if self.json => Err(Failure::silent(code(error.kind))),
            Err(error) => Err(error.clone().into()),
            Ok(result) if result.is_true("isError") => Err(self.failed(&said(result))),
            Ok(result) if asks_for_more(result) => Err(self.failed(&format!("{MORE_INPUT} {USE_MCP}"))),
            Ok(result) if self.json => self.keep(result),
            Ok(result) => {
                if let Some(notice) = notice(result) {
                    out::talk(&notice);
                }
                out::data(&readable(result))?;
                self.keep(result)
            }
        }
    }

    /// Saves what is no text, or says that it could be.
    fn keep(&self, result: &JsonObject) -> Result<(), Failure> {
        match (&self.save, enclosed(result)) {
            (None, Some(enclosed)) if !self.json => out::talk(&enclosed.notice()),
            (None, _) => {}
            (Some(path), Some(enclosed)) => out::talk(&enclosed.save(path)?),
            (Some(_), None) => {
                return Err(Failure::new("The reply is text only, so --save has nothing to save."));
            }
        }
        Ok(())
    }

    /// The target itself says that it failed.
    fn failed(&self, said: &str) -> Failure {
        if self.json { Failure::silent(1) } else { Failure::new(said) }
    }
}
