//! `octoprox call`: one call through the hub.

use super::arguments;
use super::envelope::{MORE_INPUT, USE_MCP, asks_for_more, envelope, said};
use super::failure::{Failure, code};
use super::out;
use super::readable::{notice, readable};
use super::session::{Purpose, Session, alone, settings};
use crate::assemble::{Assembly, Reach};
use crate::settings::Flags;
use crate::telemetry::Talk;
use clap::Args;
use octo_hub::{Called, Entry, Hub, ListKind, Request};
use octo_model::{Caller, Face, Op};
use octo_toolkit::Alone;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Longest that the first listing of a server is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Calls one tool and prints its result. Exit codes: 2 invalid, 3 not found, 4 denied, 5 timeout, 6 unavailable,
/// 130 cancelled, 1 everything else.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox call time_now timezone=Europe/Berlin
  octoprox call time_parse text='next friday 5pm' --json
  octoprox call notion__search --args '{\"query\": \"plan\"}'
  octoprox call fs_write_text path=notes.md content=@notes.md")]
pub struct Call {
    /// Name of the tool, as `octoprox tools` lists it
    name: String,
    /// Arguments as name=value; @file takes a file's content
    #[arg(value_name = "NAME=VALUE")]
    pairs: Vec<String>,
    /// Arguments as a JSON object; - reads it from standard input
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Print the whole reply as JSON: {success, result, error, metadata, execution_time_ms}
    #[arg(long)]
    json: bool,
    /// Call as this profile shows it
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    profile: String,
}

impl Call {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        alone(async {
            let session = Session::begin(settings(flags)?, Talk::Person, Purpose::Calls)?;
            let reach = Reach::of(&session.loaded.settings, &self.name, &self.profile);
            let assembly = Assembly::build(&session, &reach)?;
            let done = self.call(&assembly.hub).await;
            assembly.end().await;
            session.end().await;
            done
        })
    }

    async fn call(&self, hub: &Hub) -> Result<(), Failure> {
        let entry = self.entry(hub).await?;
        let schema = entry.as_ref().and_then(|entry| entry.item.members.get("inputSchema")?.to().ok());
        let arguments = arguments::read(self.args.as_deref(), &self.pairs, &schema.unwrap_or_default())?;
        let cancel = CancellationToken::new();
        let request = Request {
            op: Op::tool(self.name.clone(), arguments),
            caller: Arc::new(Caller::local()),
            face: Face::Cli,
            profile: self.profile.clone(),
            peer: Arc::new(Alone),
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
        self.print(&called, entry.as_ref())
    }

    /// The tool, once the servers have listed theirs. One that is not there is refused by the call itself, for the record.
    async fn entry(&self, hub: &Hub) -> Result<Option<Entry>, Failure> {
        let find = |hub: &Hub| {
            Ok::<_, Failure>(hub.view(&self.profile)?.named(ListKind::Tools, &self.name).cloned())
        };
        if let Some(entry) = find(hub)? {
            return Ok(Some(entry));
        }
        hub.settle(&self.profile, PATIENCE).await;
        find(hub)
    }

    fn print(&self, called: &Called, entry: Option<&Entry>) -> Result<(), Failure> {
        if self.json {
            out::data(envelope(called, &self.name, entry).as_str())?;
        }
        match &called.outcome {
            Err(error) if self.json => Err(Failure::silent(code(error.kind))),
            Err(error) => Err(error.clone().into()),
            Ok(result) if result.is_true("isError") => Err(self.failed(&said(result))),
            Ok(result) if asks_for_more(result) => Err(self.failed(&format!("{MORE_INPUT} {USE_MCP}"))),
            Ok(_) if self.json => Ok(()),
            Ok(result) => {
                if let Some(notice) = notice(result) {
                    out::talk(&notice);
                }
                Ok(out::data(&readable(result))?)
            }
        }
    }

    /// The target itself says that it failed.
    fn failed(&self, said: &str) -> Failure {
        if self.json { Failure::silent(1) } else { Failure::new(said) }
    }
}
