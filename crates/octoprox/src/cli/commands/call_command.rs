//! `octoprox call`: calls a tool through the hub.

use crate::app_context::AppMode;
use crate::app_error::AppError;
use crate::attach::tool_queries::{CallReply, ToolAnswer, ToolQuery};
use crate::cli::attachment::first_attachment;
use crate::cli::commands::tool_listing::tools_command::native_tools;
use crate::cli::result_text::{result_notice, result_text};
use crate::cli::standalone::StandaloneOption;
use crate::cli::tool_arguments;
use crate::cli::tool_client::{ToolClient, ToolSession};
use crate::cli::tool_help::tool_help;
use crate::settings::Flags;
use crate::terminal::console;
use crate::terminal::terminal_width::columns;
use clap::Args;
use octo_hub::ResultFailure;
use octo_model::{Json, JsonObject, ToolError};
use serde_json::Value;
use std::path::PathBuf;

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
    #[command(flatten)]
    standalone: StandaloneOption,
}

/// Asks for the definition of a tool.
async fn find_tool(name: &str, client: &mut ToolClient) -> Result<Option<Value>, AppError> {
    match client.ask(ToolQuery::Find { name: name.to_owned() }).await? {
        ToolAnswer::Found(tool) => Ok(tool),
        _ => Ok(None),
    }
}

impl Call {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let Some(name) = &self.name else {
            return Ok(console::print(&crate::cli::help("call"))?);
        };
        let session = ToolSession {
            flags,
            profile: &self.profile,
            mode: if self.help { AppMode::ReadOnly } else { AppMode::CallTools },
            tool: Some(name),
            standalone: &self.standalone,
        };
        session.run(async |client| match self.help {
            true => self.print_tool_help(name, client).await,
            false => self.call_tool(name, client).await,
        })
    }

    /// Prints the help of a tool, also of a disabled toolbox.
    async fn print_tool_help(&self, name: &str, client: &mut ToolClient) -> Result<(), AppError> {
        let native = native_tools().remove(name);
        let tool = match (find_tool(name, client).await?, &native) {
            (Some(tool), _) => Json::from(tool).members().unwrap_or_default(),
            (None, Some(native)) => native.definition.clone(),
            (None, None) => {
                let error = ToolError::not_found(format!("Tool not found: `{name}`."));
                return Err(error.hint("List all tools with `octoprox tools --all`.").into());
            }
        };
        let examples = native.map(|native| native.examples).unwrap_or_default();
        Ok(console::print(&tool_help(name, &tool, &examples, columns()))?)
    }

    async fn call_tool(&self, name: &str, client: &mut ToolClient) -> Result<(), AppError> {
        let tool = find_tool(name, client).await?;
        let schema = tool.and_then(|tool| tool.get("inputSchema").cloned()).unwrap_or_default();
        let arguments = tool_arguments::parse_arguments(self.args.as_deref(), &self.pairs, &schema)?;
        let query = ToolQuery::Call { name: name.to_owned(), arguments: arguments.to().unwrap_or_default() };
        match client.ask(query).await? {
            ToolAnswer::Called(reply) => self.print(reply),
            _ => Err(AppError::new("The hub gave an unexpected answer.")),
        }
    }

    fn print(&self, reply: CallReply) -> Result<(), AppError> {
        if self.json {
            console::print(&reply.whole)?;
        }
        let result = match reply.outcome {
            Err(refusal) if self.json => return Err(AppError::silent(refusal.code)),
            Err(refusal) => return Err(refusal.into()),
            Ok(result) => Json::from(result).members().unwrap_or_default(),
        };
        if let Some(failure) = ResultFailure::of(&result) {
            return Err(self.tool_failed(&failure));
        }
        if !self.json {
            if let Some(notice) = result_notice(&result) {
                console::print_err(&notice);
            }
            console::print(&result_text(&result))?;
        }
        self.save_attachment(&result)
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
