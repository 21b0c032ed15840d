//! `octoprox tools`: lists the tools.

use crate::app_context::AppMode;
use crate::app_error::AppError;
use crate::attach::tool_queries::{SourceStatus, ToolAnswer, ToolList, ToolQuery};
use crate::cli::list_cost::ListCost;
use crate::cli::standalone::StandaloneOption;
use crate::cli::tool_client::ToolSession;
use crate::settings::{Flags, Settings};
use crate::terminal::console;
use crate::terminal::terminal_width::columns;
use crate::terminal::text_table::{sanitize_line, sanitize_text, two_columns};
use crate::toolboxes::toolboxes;
use clap::Args;
use octo_model::{Json, JsonObject};
use octo_toolkit::ErasedTool;
use serde_json::Value;
use std::collections::HashMap;

/// List the tools that an agent sees: native ones and those of every server.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox tools\n  octoprox tools --all --json\n  octoprox tools --profile work\n  octoprox tools --cost"
)]
pub struct Tools {
    /// Print complete definitions as JSON: {"tools": […]}
    #[arg(long)]
    json: bool,
    /// Include tools of disabled toolboxes
    #[arg(long)]
    all: bool,
    /// Print what the definitions cost a model: bytes and estimated tokens per server and tool, and list changes
    #[arg(long, conflicts_with = "all")]
    cost: bool,
    /// List the tools of this profile
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    profile: String,
    #[command(flatten)]
    standalone: StandaloneOption,
}

impl Tools {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let session = ToolSession {
            flags,
            profile: &self.profile,
            mode: AppMode::ReadOnly,
            tool: None,
            standalone: &self.standalone,
        };
        session.run(async |client| {
            let answer = client.ask(ToolQuery::List).await?;
            let ToolAnswer::Listed(list) = answer else {
                return Err(AppError::new("The hub gave an unexpected answer."));
            };
            warn_missing_servers(&list);
            if self.cost {
                let cost = ListCost::new(&list);
                let shown = if self.json { cost.to_json() } else { cost.to_text() };
                return Ok(console::print(&shown)?);
            }
            if !self.all && !self.json && self.profile.is_empty() {
                warn_disabled_toolboxes(&list);
            }
            Ok(console::print(&self.print(&list))?)
        })
    }

    fn print(&self, list: &ToolList) -> String {
        let members = |tools: &[Value]| -> Vec<JsonObject> {
            tools.iter().filter_map(|tool| Json::from(tool.clone()).members().ok()).collect()
        };
        let tools = members(&list.tools);
        let off = if self.all { members(&list.disabled_tools) } else { Vec::new() };
        if self.json { self.as_json(list, tools, off) } else { as_table(&tools, &off) }
    }

    /// With `--all`, adds the toolbox and the examples of each native tool.
    fn as_json(&self, list: &ToolList, tools: Vec<JsonObject>, off: Vec<JsonObject>) -> String {
        let mut all: Vec<JsonObject> = tools.into_iter().chain(off).collect();
        if self.all {
            let natives = native_tools();
            all = all.into_iter().map(|tool| with_examples(tool, &list.toolboxes, &natives)).collect();
        }
        let all: Vec<Json> = all.iter().map(JsonObject::to_json).collect();
        JsonObject::new().with("tools", Json::array(&all)).to_json().to_string()
    }
}

fn as_table(tools: &[JsonObject], off: &[JsonObject]) -> String {
    let row = |members: &JsonObject, note: &str| {
        let about = members.text("description").or_else(|| members.text("title")).unwrap_or_default();
        (sanitize_line(&members.text("name").unwrap_or_default()), format!("{note}{}", sanitize_text(&about)))
    };
    let on = tools.iter().map(|members| row(members, ""));
    let off = off.iter().map(|members| row(members, "(off) "));
    let rows: Vec<(String, String)> = on.chain(off).collect();
    if rows.is_empty() { "No tools.\n".to_owned() } else { two_columns(&rows, columns()) }
}

/// Returns every native tool by name.
pub fn native_tools() -> HashMap<&'static str, ErasedTool> {
    let tools = toolboxes(&Settings::default()).into_iter().flat_map(|toolbox| toolbox.tools);
    tools.map(|tool| (tool.name, tool)).collect()
}

fn with_examples(
    mut members: JsonObject,
    homes: &[(String, String)],
    natives: &HashMap<&'static str, ErasedTool>,
) -> JsonObject {
    let name = members.text("name").unwrap_or_default();
    let Some((_, home)) = homes.iter().find(|(tool, _)| *tool == name) else {
        return members;
    };
    let mut meta = members.object("_meta").with("octoprox/toolbox", home.as_str());
    let examples = natives.get(name.as_str()).map(examples).unwrap_or_default();
    if !examples.is_empty() {
        meta.set("octoprox/examples", Json::array(&examples));
    }
    members.set("_meta", meta);
    members
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
fn warn_missing_servers(list: &ToolList) {
    for (name, status) in &list.missing_servers {
        match status {
            SourceStatus::Down(why) => {
                console::print_err(&format!("octoprox: server {name} is down: {}", sanitize_line(why)))
            }
            SourceStatus::Starting => {
                console::print_err(&format!("octoprox: server {name} is still starting"))
            }
        }
    }
}

/// Prints the disabled toolboxes, for users who look for a tool.
fn warn_disabled_toolboxes(list: &ToolList) {
    if !list.disabled_toolboxes.is_empty() {
        console::print_err(&format!(
            "Disabled toolboxes: {}. Use `octoprox tools --all` to list their tools, too.",
            list.disabled_toolboxes.join(", ")
        ));
    }
}
