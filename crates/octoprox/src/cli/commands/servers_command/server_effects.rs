//! `octoprox servers effects`: proposes the effects of a server's tools.

use crate::app_context::{AppContext, AppMode, block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::cli::commands::servers_command::list_servers::server_lines;
use crate::cli::commands::servers_command::server_listing::{
    find_line, not_started, sentence, wait_for_listing,
};
use crate::cli::commands::servers_command::test_servers::DEFAULT_TIMEOUT_SECONDS;
use crate::gateway::Gateway;
use crate::gateway::package_runner::{INSTALL_TIMEOUT, is_package_runner};
use crate::settings::edit::settings_edit;
use crate::settings::{Environment, Flags};
use crate::telemetry::{LogMode, Redactor, settings_secrets};
use crate::terminal::console;
use crate::terminal::text_table::sanitize_line;
use clap::Args;
use octo_hub::trust::{DeclaredEffects, EffectPatterns, EffectProposal};
use octo_model::{EffectClass, ItemKind, ToolError};
use octo_toolkit::Listing;
use serde::Serialize;
use serde_json::{Map, json};
use std::time::{Duration, Instant};

/// Propose the effects of a server's tools, from their names and annotations. Policy rules use effects; without `effects`
/// in the settings, every tool of an MCP server counts as `destroys`. Review the proposal, then add it to the settings.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox servers effects notion\n  octoprox servers effects notion --json"
)]
pub struct Effects {
    /// Name of the server
    server: String,
    /// Timeout for its listing, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT_SECONDS)]
    timeout: u64,
    /// Print as JSON: {server, effects: {reads, writes}, tools: [{name, proposed, basis, declared}]}
    #[arg(long)]
    json: bool,
}

/// A tool with its proposed effect.
#[derive(Serialize)]
struct ToolEffect {
    name: String,
    proposed: EffectClass,
    basis: &'static str,
    /// The effect that the settings declare.
    #[serde(skip_serializing_if = "Option::is_none")]
    declared: Option<EffectClass>,
}

impl Effects {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        let standing = server_lines(&loaded, &Environment::current());
        let line = find_line(&self.server, &standing)?;
        let Some(server) = loaded.settings.servers.get(&self.server).cloned() else {
            return Err(AppError::invalid(format!("`{}` is not a server of the settings.", self.server)));
        };
        let declared = server.effects.as_ref().and_then(|effects| DeclaredEffects::new(effects).ok());
        let redactor = Redactor::new(settings_secrets(&loaded));
        let file = line.file.clone();
        let listing = block_on_current_thread(async {
            let session = AppContext::start(loaded, LogMode::Command, AppMode::ReadOnly)?;
            let begun = Instant::now();
            let gateway = Gateway::start_uncached(&session, |name| name == line.name && line.is_ready())?;
            let timeout = Duration::from_secs(self.timeout.max(1));
            let timeout = if is_package_runner(&server) { timeout.max(INSTALL_TIMEOUT) } else { timeout };
            let listing = match gateway.servers().all().get(&line.name) {
                Some(known) if line.is_ready() => {
                    wait_for_listing(line, &server, known, begun, timeout).await
                }
                _ => Err(not_started(line)),
            };
            gateway.shutdown().await;
            listing.map_err(|(message, hint)| {
                let clean = |text: &str| redactor.redact(text).into_owned();
                let message = clean(&format!("{}: {}", self.server, sentence(&message)));
                AppError::from(ToolError::unavailable(message).hint(clean(&hint)))
            })
        })?;
        let tools = tool_effects(&listing.listing, declared.as_ref());
        self.print_result(&tools, &file)
    }

    fn print_result(&self, tools: &[ToolEffect], file: &str) -> Result<(), AppError> {
        let effects = proposed_patterns(tools);
        if self.json {
            let effects = json!({"reads": effects.reads, "writes": effects.writes});
            return Ok(console::print(
                &json!({"server": self.server, "effects": effects, "tools": tools}).to_string(),
            )?);
        }
        if tools.is_empty() {
            console::print_err(&format!("{} has no tools.", self.server));
            return Ok(());
        }
        console::print(&render_tools(tools))?;
        if tools.iter().all(|tool| tool.declared == Some(tool.proposed)) {
            console::print_err(&format!("The settings in {file} declare these effects."));
            return Ok(());
        }
        if effects == EffectPatterns::default() {
            console::print_err("Nothing to declare: what is not declared counts as `destroys`.");
            return Ok(());
        }
        console::print_err(&format!(
            "Review these effects. To declare them, add this to the server in {file}:"
        ));
        let list = |names: &[String]| (!names.is_empty()).then(|| json!(names));
        let members: Map<_, _> = [("reads", list(&effects.reads)), ("writes", list(&effects.writes))]
            .into_iter()
            .filter_map(|(effect, names)| Some((effect.to_owned(), names?)))
            .collect();
        let server = Map::from_iter([("effects".to_owned(), members.into())]);
        Ok(console::print(settings_edit::yaml_snippet(&self.server, &server).trim_end())?)
    }
}

fn tool_effects(listing: &Listing, declared: Option<&DeclaredEffects>) -> Vec<ToolEffect> {
    let effect = |tool: &octo_toolkit::Definition| {
        let EffectProposal { class, basis } =
            EffectProposal::new(&tool.key, &tool.members.object("annotations"));
        let declared = declared
            .and_then(|declared| declared.effect(ItemKind::Tool, &tool.key, &tool.members))
            .map(|effect| effect.class());
        ToolEffect { name: sanitize_line(&tool.key), proposed: class, basis, declared }
    };
    listing.tools.iter().map(effect).collect()
}

/// The proposal as settings: exact names, so that nothing applies to tools that nobody has seen.
fn proposed_patterns(tools: &[ToolEffect]) -> EffectPatterns {
    let names = |class: EffectClass| {
        tools.iter().filter(|tool| tool.proposed == class).map(|tool| globset::escape(&tool.name)).collect()
    };
    EffectPatterns {
        reads: names(EffectClass::Reads),
        writes: names(EffectClass::Writes),
        destroys: Vec::new(),
    }
}

/// One line per tool: name, proposed effect, basis, and what the settings declare instead.
fn render_tools(tools: &[ToolEffect]) -> String {
    let width = tools.iter().map(|tool| tool.name.chars().count()).max().unwrap_or_default().min(40);
    let line = |tool: &ToolEffect| {
        let declared = match tool.declared {
            Some(declared) if declared != tool.proposed => format!("; declared as {}", declared.as_str()),
            _ => String::new(),
        };
        format!("{:width$}  {:8}  {}{declared}", tool.name, tool.proposed.as_str(), tool.basis)
    };
    tools.iter().map(line).collect::<Vec<_>>().join("\n")
}
