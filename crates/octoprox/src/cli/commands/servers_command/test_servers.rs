//! `octoprox servers test`: connects to servers and lists their tools.

use crate::app_context::{AppContext, AppMode, block_on_current_thread, load_settings};
use crate::app_error::{AppError, exit_code};
use crate::cli::commands::servers_command::list_servers::{ServerLine, server_lines};
use crate::cli::commands::servers_command::server_listing::{
    MessageAndHint, find_line, not_started, sentence, wait_for_listing,
};
use crate::gateway::Gateway;
use crate::gateway::package_runner::{INSTALL_TIMEOUT, is_package_runner};
use crate::settings::{Environment, Flags};
use crate::telemetry::{LogMode, Redactor, settings_secrets};
use crate::terminal::console;
use crate::terminal::text_table::sanitize_text;
use clap::Args;
use futures_util::stream::{FuturesOrdered, StreamExt};
use octo_model::{Json, Kind};
use octo_toolkit::ListingState;
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

/// Typical for JSON in the tokenizers of large models.
const BYTES_PER_TOKEN: usize = 4;
pub const DEFAULT_TIMEOUT_SECONDS: u64 = 30;

/// Connect to servers and list their tools. Problems are reported with a next step. Exit with code 6 if a server cannot be
/// used.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox servers test\n  octoprox servers test notion --tools")]
pub struct TestServers {
    /// Servers to test [default: all enabled servers]
    names: Vec<String>,
    /// Timeout per server, in seconds [default: 30]. Servers that `npx`, `uvx` and the like start have at least 180: ending
    /// a download early would leave a broken cache
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// List the names of the tools
    #[arg(long)]
    tools: bool,
    /// Print the result as JSON: {servers: [{name, ok, tools, tokens, millis, message, hint}]}
    #[arg(long)]
    json: bool,
}

/// Result of testing one server.
#[derive(Default, Serialize)]
struct TestOutcome {
    name: String,
    ok: bool,
    tools: Vec<String>,
    /// What the definitions of the tools cost in a model's context, estimated.
    tokens: usize,
    prompts: usize,
    resources: usize,
    millis: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl TestServers {
    /// A test of one server with the default options.
    pub fn of(name: &str) -> Self {
        Self { names: vec![name.to_owned()], timeout: None, tools: false, json: false }
    }

    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let mut loaded = load_settings(flags)?;
        for server in loaded.settings.servers.values_mut() {
            server.start_timeout_seconds = server.start_timeout_seconds.max(self.timeout.unwrap_or_default());
        }
        let standing = server_lines(&loaded, &Environment::current());
        let chosen = self.selected(&standing)?;
        if chosen.is_empty() && self.json {
            return Ok(console::print(&json!({"servers": []}).to_string())?);
        }
        if chosen.is_empty() {
            console::print_err("No servers to test. Run `octoprox servers list` to see the servers.");
            return Ok(());
        }
        let redactor = Redactor::new(settings_secrets(&loaded));
        block_on_current_thread(async {
            let session = AppContext::start(loaded, LogMode::Command, AppMode::ReadOnly)?;
            // Servers start concurrently; results are printed in order.
            let begun = Instant::now();
            let timeout = Duration::from_secs(self.timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS).max(1));
            let is_runner = |line: &&ServerLine| {
                session.loaded.settings.servers.get(&line.name).is_some_and(is_package_runner)
            };
            // They start one after the other.
            let installs = chosen.iter().copied().filter(is_runner).count();
            let install_timeout = INSTALL_TIMEOUT * u32::try_from(installs).unwrap_or(u32::MAX);
            let gateway = Gateway::start_uncached(&session, |name| {
                chosen.iter().any(|line| line.name == name && line.is_ready())
            })?;
            let mut sources = gateway.servers().all();
            let mut tries: FuturesOrdered<_> = chosen
                .into_iter()
                .map(|line| {
                    let known = sources.remove(&line.name);
                    let server = session.loaded.settings.servers.get(&line.name);
                    let timeout = if is_runner(&line) { timeout.max(install_timeout) } else { timeout };
                    async move {
                        let listing = match (&known, server) {
                            (Some(known), Some(server)) => {
                                wait_for_listing(line, server, known, begun, timeout).await
                            }
                            _ => Err(not_started(line)),
                        };
                        (line, listing, begun.elapsed().as_millis())
                    }
                })
                .collect();
            let mut outcomes = Vec::new();
            while let Some((line, listing, millis)) = tries.next().await {
                let outcome = outcome(line, listing, millis, &redactor);
                if !self.json {
                    console::print(&self.render_outcome(&outcome))?;
                }
                outcomes.push(outcome);
            }
            gateway.shutdown().await;
            let all = outcomes.iter().all(|outcome| outcome.ok);
            if self.json {
                console::print(&json!({"servers": outcomes}).to_string())?;
            }
            if all { Ok(()) } else { Err(AppError::silent(exit_code(Kind::Unavailable))) }
        })
    }

    fn selected<'a>(&self, standing: &'a [ServerLine]) -> Result<Vec<&'a ServerLine>, AppError> {
        if self.names.is_empty() {
            return Ok(standing.iter().filter(|line| !line.is_off()).collect());
        }
        self.names.iter().map(|name| find_line(name, standing)).collect()
    }

    fn render_outcome(&self, outcome: &TestOutcome) -> String {
        let TestOutcome { name, ok, tools, tokens, prompts, resources, millis, message, hint } = outcome;
        if !ok {
            let (message, hint) =
                (message.as_deref().unwrap_or_default(), hint.as_deref().unwrap_or_default());
            return format!("{name}: {}\n  {hint}", sentence(message));
        }
        let ending = |count: usize| if count == 1 { "" } else { "s" };
        let mut said =
            format!("{name}: ok, {} tool{} (about {tokens} tokens)", tools.len(), ending(tools.len()));
        for (count, what) in [(*prompts, "prompt"), (*resources, "resource")] {
            if count > 0 {
                said.push_str(&format!(", {count} {what}{}", ending(count)));
            }
        }
        said.push_str(&format!(", {millis} ms"));
        if self.tools {
            tools.iter().for_each(|tool| said.push_str(&format!("\n  {tool}")));
        }
        said
    }
}

fn outcome(
    line: &ServerLine,
    listing: Result<ListingState, MessageAndHint>,
    millis: u128,
    redactor: &Redactor,
) -> TestOutcome {
    let clean = |text: String| Some(sanitize_text(&redactor.redact(&text)));
    let blank = TestOutcome { name: line.name.clone(), millis, ..TestOutcome::default() };
    match listing {
        Ok(ListingState { listing: lists, .. }) => TestOutcome {
            ok: true,
            tools: lists.tools.iter().map(|tool| sanitize_text(&tool.key)).collect(),
            tokens: lists
                .tools
                .iter()
                .map(|tool| Json::from(tool.members.clone()).bytes().len())
                .sum::<usize>()
                / BYTES_PER_TOKEN,
            prompts: lists.prompts.len(),
            resources: lists.resources.len() + lists.templates.len(),
            ..blank
        },
        Err((message, hint)) => TestOutcome { message: clean(message), hint: clean(hint), ..blank },
    }
}
