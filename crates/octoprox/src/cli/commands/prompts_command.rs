//! `octoprox prompts`: lists, shows and renders prompts.

use crate::app::{App, StartServers};
use crate::app_context::{AppContext, AppMode, block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::cli::tool_arguments;
use crate::settings::Flags;
use crate::telemetry::LogMode;
use crate::terminal::console;
use crate::terminal::terminal_width::columns;
use crate::terminal::text_table::{sanitize_line, sanitize_text, two_columns};
use clap::{Args, Subcommand};
use octo_hub::{Hub, Request};
use octo_model::{Caller, Frontend, ItemKind, Json, JsonObject, Method, Operation, ToolError};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Timeout for servers that are still starting.
const LISTING_TIMEOUT: Duration = Duration::from_secs(15);

/// List, show and render prompts. Problems in prompt files are reported with file and line.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox prompts\n  octoprox prompts show code_review\n  octoprox prompts get code_review code=@main.rs focus=security"
)]
pub struct Prompts {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print as JSON
    #[arg(long, global = true)]
    json: bool,
    /// Use the names and rules of this profile
    #[arg(long, global = true, value_name = "NAME", default_value = "", hide_default_value = true)]
    profile: String,
}

#[derive(Subcommand)]
enum Command {
    List(List),
    Show(Show),
    Get(Get),
}

/// List all prompts: built-in, from prompt files, and of every server.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox prompts list --json")]
struct List {}

/// Show a prompt: its purpose and its arguments.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox prompts show code_review")]
struct Show {
    /// Name of the prompt, from `octoprox prompts`
    name: String,
}

/// Render a prompt and print its text.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox prompts get commit_message style=conventional
  octoprox prompts get explain_concept concept='eventual consistency' level=beginner")]
struct Get {
    /// Name of the prompt, from `octoprox prompts`
    name: String,
    /// Arguments as name=value; @file reads the value from a file
    #[arg(value_name = "NAME=VALUE")]
    pairs: Vec<String>,
}

impl Prompts {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let purpose = if matches!(self.command, Some(Command::Get(_))) {
            AppMode::CallTools
        } else {
            AppMode::ReadOnly
        };
        block_on_current_thread(async {
            let session = AppContext::start(load_settings(flags)?, LogMode::Command, purpose)?;
            let assembly = App::build(&session, &StartServers::All)?;
            let said = self.output(&assembly.hub).await;
            assembly.shutdown().await;
            session.shutdown().await;
            Ok(console::print(&said?)?)
        })
    }

    async fn output(&self, hub: &Hub) -> Result<String, AppError> {
        hub.wait_until_listed(&self.profile, LISTING_TIMEOUT).await;
        match &self.command {
            None | Some(Command::List(_)) => self.list(hub).await,
            Some(Command::Show(show)) => self.show(hub, &show.name).await,
            Some(Command::Get(get)) => self.get(hub, get).await,
        }
    }

    async fn list_all(&self, hub: &Hub) -> Result<Vec<JsonObject>, AppError> {
        let (mut all, mut cursor): (Vec<JsonObject>, Option<String>) = (Vec::new(), None);
        loop {
            let page = hub.list(&self.profile, ItemKind::Prompt, &Caller::local(), cursor.as_deref()).await?;
            let items = page.items.elements().unwrap_or_default();
            all.extend(items.iter().filter_map(|prompt| prompt.members().ok()));
            cursor = page.next;
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    async fn list(&self, hub: &Hub) -> Result<String, AppError> {
        let all = self.list_all(hub).await?;
        if self.json {
            let prompts: Vec<Json> = all.iter().map(JsonObject::to_json).collect();
            return Ok(JsonObject::new().with("prompts", Json::array(&prompts)).to_json().to_string());
        }
        let row = |prompt: &JsonObject| {
            let about = prompt.text("description").or_else(|| prompt.text("title")).unwrap_or_default();
            (sanitize_line(&prompt.text("name").unwrap_or_default()), sanitize_text(&about))
        };
        let rows: Vec<(String, String)> = all.iter().map(row).collect();
        Ok(if rows.is_empty() { "No prompts.\n".to_owned() } else { two_columns(&rows, columns()) })
    }

    async fn show(&self, hub: &Hub, name: &str) -> Result<String, AppError> {
        let all = self.list_all(hub).await?;
        let prompt =
            all.iter().find(|prompt| prompt.text("name").as_deref() == Some(name)).ok_or_else(|| {
                ToolError::not_found(format!("Prompt not found: `{name}`."))
                    .hint("Run `octoprox prompts` to see all prompts.")
            })?;
        Ok(if self.json { prompt.to_json().to_string() } else { prompt_help(prompt) })
    }

    async fn get(&self, hub: &Hub, get: &Get) -> Result<String, AppError> {
        // All arguments of prompts are strings.
        let names = get.pairs.iter().filter_map(|pair| pair.split_once('='));
        let texts: Map<String, Value> =
            names.map(|(name, _)| (name.to_owned(), json!({"type": "string"}))).collect();
        let arguments = tool_arguments::parse_arguments(None, &get.pairs, &json!({"properties": texts}))?;
        let params = JsonObject::new().with("name", get.name.as_str()).with("arguments", arguments);
        let called = hub
            .call(Request {
                profile: self.profile.clone(),
                ..Request::new(
                    Operation { method: Method::GetPrompt, name: get.name.clone(), params },
                    Arc::new(Caller::local()),
                    Frontend::Cli,
                )
            })
            .await;
        let result = called.outcome?;
        Ok(if self.json { result.to_json().to_string() } else { messages_text(&result) })
    }
}

fn prompt_help(prompt: &JsonObject) -> String {
    let mut text = format!("{}\n", prompt.text("description").unwrap_or_default());
    let arguments = prompt.list("arguments");
    let rows = arguments.iter().filter_map(|argument| argument.members().ok()).map(|argument| {
        let need = if argument.is_true("required") { "(required) " } else { "" };
        let about = format!("{need}{}", argument.text("description").unwrap_or_default());
        format!("  {}: {about}\n", argument.text("name").unwrap_or_default())
    });
    let rows: String = rows.collect();
    if !rows.is_empty() {
        text.push_str("\nArguments:\n");
        text.push_str(&rows);
    }
    sanitize_text(&text)
}

/// Renders the text of all messages, with the role if it is not `user`.
fn messages_text(result: &JsonObject) -> String {
    let messages = result.list("messages");
    let texts = messages.iter().filter_map(|message| message.members().ok()).map(|message| {
        let content = message.object("content");
        let text = content.text("text").unwrap_or_else(|| content.to_json().to_string());
        match message.text("role").as_deref() {
            Some("user") | None => text,
            Some(role) => format!("[{role}] {text}"),
        }
    });
    sanitize_text(&texts.collect::<Vec<_>>().join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_in_words() {
        let prompt = r#"{"name":"a","description":"Does.","arguments":[{"name":"x","description":"One.","required":true},{"name":"y"}]}"#;
        let prompt = JsonObject::parse(prompt.to_owned()).unwrap();
        assert_eq!(prompt_help(&prompt), "Does.\n\nArguments:\n  x: (required) One.\n  y: \n");
        let result = r#"{"messages":[{"role":"user","content":{"type":"text","text":"a\u001b"}},{"role":"assistant","content":{"type":"text","text":"b"}}]}"#;
        let result = JsonObject::parse(result.to_owned()).unwrap();
        assert_eq!(messages_text(&result), "a\u{fffd}\n\n[assistant] b");
    }
}
