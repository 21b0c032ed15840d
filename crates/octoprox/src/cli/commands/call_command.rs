//! `octoprox call`: calls a tool through the hub.

use crate::app::{App, StartServers};
use crate::app_context::{AppContext, AppMode, block_on_current_thread, load_settings};
use crate::app_error::{AppError, exit_code};
use crate::cli::attachment::first_attachment;
use crate::cli::commands::tools_command::native_tools;
use crate::cli::result_text::{result_notice, result_text};
use crate::cli::tool_arguments;
use crate::cli::tool_help::tool_help;
use crate::settings::Flags;
use crate::telemetry::LogMode;
use crate::terminal::console;
use crate::terminal::terminal_width::columns;
use clap::Args;
use octo_hub::{CallOutcome, Entry, Hub, Request, ResultFailure};
use octo_model::{Caller, Frontend, ItemKind, JsonObject, Operation, ToolError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Timeout for the first listing of a server.
const LISTING_TIMEOUT: Duration = Duration::from_secs(30);

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
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let Some(name) = &self.name else {
            return Ok(console::print(&crate::cli::help("call"))?);
        };
        block_on_current_thread(async {
            let purpose = if self.help { AppMode::ReadOnly } else { AppMode::CallTools };
            let session = AppContext::start(load_settings(flags)?, LogMode::Command, purpose)?;
            let reach = StartServers::for_tool(&session.loaded.settings, name, &self.profile);
            let assembly = App::build(&session, &reach)?;
            let done = match self.help {
                true => self.print_tool_help(name, &assembly.hub).await,
                false => self.call_tool(name, &assembly.hub).await,
            };
            assembly.shutdown().await;
            session.shutdown().await;
            done
        })
    }

    /// Prints the help of a tool, also of a disabled toolbox.
    async fn print_tool_help(&self, name: &str, hub: &Hub) -> Result<(), AppError> {
        let native = native_tools().remove(name);
        let tool = match (self.entry(name, hub).await?, &native) {
            (Some(entry), _) => entry.item.members.clone(),
            (None, Some(native)) => native.definition.clone(),
            (None, None) => {
                let error = ToolError::not_found(format!("Tool not found: `{name}`."));
                return Err(error.hint("List all tools with `octoprox tools --all`.").into());
            }
        };
        let examples = native.map(|native| native.examples).unwrap_or_default();
        Ok(console::print(&tool_help(name, &tool, &examples, columns()))?)
    }

    async fn call_tool(&self, name: &str, hub: &Hub) -> Result<(), AppError> {
        let entry = self.entry(name, hub).await?;
        let schema = entry.as_ref().and_then(|entry| entry.item.members.get("inputSchema")?.to().ok());
        let arguments =
            tool_arguments::parse_arguments(self.args.as_deref(), &self.pairs, &schema.unwrap_or_default())?;
        let cancel = CancellationToken::new();
        let request = Request {
            profile: self.profile.clone(),
            cancel: cancel.clone(),
            ..Request::new(
                Operation::tool(name.to_owned(), arguments),
                Arc::new(Caller::local()),
                Frontend::Cli,
            )
        };
        let mut call = std::pin::pin!(hub.call(request));
        let called = tokio::select! {
            called = &mut call => called,
            _ = tokio::signal::ctrl_c() => {
                cancel.cancel();
                call.await
            }
        };
        self.print(&called, name)
    }

    /// Finds the tool, after the servers have listed theirs. The call itself refuses an unknown one, so that it is
    /// audited.
    async fn entry(&self, name: &str, hub: &Hub) -> Result<Option<Entry>, AppError> {
        let find =
            |hub: &Hub| Ok::<_, AppError>(hub.view(&self.profile)?.by_name(ItemKind::Tool, name).cloned());
        if let Some(entry) = find(hub)? {
            return Ok(Some(entry));
        }
        hub.wait_until_listed(&self.profile, LISTING_TIMEOUT).await;
        find(hub)
    }

    fn print(&self, called: &CallOutcome, name: &str) -> Result<(), AppError> {
        if self.json {
            console::print(&octo_web::tool_reply(called, name))?;
        }
        let result = match &called.outcome {
            Err(error) if self.json => return Err(AppError::silent(exit_code(error.kind))),
            Err(error) => return Err(error.clone().into()),
            Ok(result) => result,
        };
        if let Some(failure) = ResultFailure::of(result) {
            return Err(self.tool_failed(&failure));
        }
        if !self.json {
            if let Some(notice) = result_notice(result) {
                console::print_err(&notice);
            }
            console::print(&result_text(result))?;
        }
        self.save_attachment(result)
    }

    /// Saves the attachment, or prints a notice that there is one.
    fn save_attachment(&self, result: &JsonObject) -> Result<(), AppError> {
        match (&self.save, first_attachment(result)) {
            (None, Some(enclosed)) if !self.json => console::print_err(&enclosed.notice()),
            (None, _) => {}
            (Some(path), Some(enclosed)) => console::print_err(&enclosed.save(path)?),
            (Some(_), None) => {
                return Err(AppError::new("The reply has only text: nothing to save with --save."));
            }
        }
        Ok(())
    }

    /// Error for a failure that the tool itself reported.
    fn tool_failed(&self, failure: &ResultFailure) -> AppError {
        match failure.hint {
            _ if self.json => AppError::silent(1),
            Some(hint) => AppError::new(format!("{} {hint}", failure.message)),
            None => AppError::new(failure.message.as_str()),
        }
    }
}
