//! `octoprox tools`: lists the tools.

use crate::app::{App, StartServers};
use crate::app_context::{AppContext, AppMode, block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::settings::{Flags, Settings};
use crate::telemetry::LogMode;
use crate::terminal::console;
use crate::terminal::terminal_width::columns;
use crate::terminal::text_table::{sanitize_line, sanitize_text, two_columns};
use crate::toolboxes::toolboxes;
use clap::Args;
use octo_hub::Hub;
use octo_model::{Caller, ItemKind, Json, JsonObject};
use octo_toolkit::{Definition, ErasedTool, SourceState};
use std::collections::HashMap;
use std::time::Duration;

/// Timeout for servers that are still starting.
const LISTING_TIMEOUT: Duration = Duration::from_secs(15);

/// List the tools that an agent sees: native ones and those of every server.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox tools\n  octoprox tools --all --json\n  octoprox tools --profile work"
)]
pub struct Tools {
    /// Print complete definitions as JSON: {"tools": […]}
    #[arg(long)]
    json: bool,
    /// Include tools of disabled toolboxes
    #[arg(long)]
    all: bool,
    /// List the tools of this profile
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    profile: String,
}

impl Tools {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        block_on_current_thread(async {
            let session = AppContext::start(load_settings(flags)?, LogMode::Command, AppMode::ReadOnly)?;
            let assembly = App::build(&session, &StartServers::All)?;
            let listed = self.list(&assembly.hub).await;
            warn_missing_servers(&assembly.hub);
            if !self.all && !self.json && self.profile.is_empty() {
                warn_disabled_toolboxes(&assembly.hub);
            }
            assembly.shutdown().await;
            Ok(console::print(&listed?)?)
        })
    }

    async fn list(&self, hub: &Hub) -> Result<String, AppError> {
        hub.wait_until_listed(&self.profile, LISTING_TIMEOUT).await;
        let mut tools = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page = hub.list(&self.profile, ItemKind::Tool, &Caller::local(), cursor.as_deref()).await?;
            tools.extend(page.items.elements().unwrap_or_default());
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let off = if self.all { disabled_tools(hub) } else { Vec::new() };
        if self.json { Ok(self.as_json(hub, tools, off)) } else { Ok(as_table(&tools, &off)) }
    }

    /// With `--all`, adds the toolbox and the examples of each native tool.
    fn as_json(&self, hub: &Hub, tools: Vec<Json>, off: Vec<Definition>) -> String {
        let off = off.into_iter().map(|definition| definition.members.to_json());
        let mut all: Vec<Json> = tools.into_iter().chain(off).collect();
        if self.all {
            let (homes, natives) = (toolbox_by_tool(hub), native_tools());
            all = all.iter().map(|tool| with_examples(tool, &homes, &natives)).collect();
        }
        JsonObject::new().with("tools", Json::array(&all)).to_json().to_string()
    }
}

fn as_table(tools: &[Json], off: &[Definition]) -> String {
    let row = |members: &JsonObject, note: &str| {
        let about = members.text("description").or_else(|| members.text("title")).unwrap_or_default();
        (sanitize_line(&members.text("name").unwrap_or_default()), format!("{note}{}", sanitize_text(&about)))
    };
    let on = tools.iter().filter_map(|tool| tool.members().ok()).map(|members| row(&members, ""));
    let off = off.iter().map(|definition| row(&definition.members, "(off) "));
    let rows: Vec<(String, String)> = on.chain(off).collect();
    if rows.is_empty() { "No tools.\n".to_owned() } else { two_columns(&rows, columns()) }
}

/// Tools of disabled toolboxes, which cannot be called.
fn disabled_tools(hub: &Hub) -> Vec<Definition> {
    let off = hub.sources().into_iter().filter(|(_, _, state, _)| matches!(state, SourceState::Off(_)));
    off.flat_map(|(.., lists)| lists.tools.clone()).collect()
}

/// Returns the toolbox of every native tool.
fn toolbox_by_tool(hub: &Hub) -> Vec<(String, String)> {
    let native = hub.sources().into_iter().filter(|(_, native, ..)| *native);
    native
        .flat_map(|(name, _, _, lists)| {
            lists.tools.iter().map(|tool| (tool.key.clone(), name.clone())).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns every native tool by name.
pub fn native_tools() -> HashMap<&'static str, ErasedTool> {
    let tools = toolboxes(&Settings::default()).into_iter().flat_map(|toolbox| toolbox.tools);
    tools.map(|tool| (tool.name, tool)).collect()
}

fn with_examples(
    tool: &Json,
    homes: &[(String, String)],
    natives: &HashMap<&'static str, ErasedTool>,
) -> Json {
    let Ok(mut members) = tool.members() else {
        return tool.clone();
    };
    let name = members.text("name").unwrap_or_default();
    let Some((_, home)) = homes.iter().find(|(tool, _)| *tool == name) else {
        return tool.clone();
    };
    let mut meta = members.object("_meta").with("octoprox/toolbox", home.as_str());
    let examples = natives.get(name.as_str()).map(examples).unwrap_or_default();
    if !examples.is_empty() {
        meta.set("octoprox/examples", Json::array(&examples));
    }
    members.set("_meta", meta);
    members.to_json()
}

fn examples(tool: &ErasedTool) -> Vec<Json> {
    let examples = tool.examples.iter().cloned();
    let written = examples.map(|example| {
        let members = JsonObject::new().with("what", example.purpose).with("input", example.input);
        match example.output {
            Some(output) => members.with("output", output).to_json(),
            None => members.to_json(),
        }
    });
    written.collect()
}

/// Prints the servers whose tools are missing from the list.
fn warn_missing_servers(hub: &Hub) {
    for (name, _, state, _) in hub.sources() {
        match state {
            SourceState::Down(why) => {
                console::print_err(&format!("octoprox: server {name} is down: {}", sanitize_line(&why)))
            }
            SourceState::Starting => {
                console::print_err(&format!("octoprox: server {name} is still starting"))
            }
            SourceState::Ready | SourceState::Off(_) => {}
        }
    }
}

/// Prints the disabled toolboxes, for users who look for a tool.
fn warn_disabled_toolboxes(hub: &Hub) {
    let off = hub
        .sources()
        .into_iter()
        .filter(|(_, _, state, lists)| matches!(state, SourceState::Off(_)) && !lists.tools.is_empty());
    let off: Vec<String> = off.map(|(name, ..)| name).collect();
    if !off.is_empty() {
        console::print_err(&format!(
            "Disabled toolboxes: {}. Use `octoprox tools --all` to list their tools, too.",
            off.join(", ")
        ));
    }
}
