//! `octoprox servers test`: connects to servers and lists their tools.

use crate::app_context::{AppContext, AppMode, block_on_current_thread, load_settings};
use crate::app_error::{AppError, exit_code};
use crate::cli::commands::servers_command::list_servers::{ServerLine, server_lines};
use crate::cli::commands::servers_command::similar_server;
use crate::gateway::{Gateway, login_spec};
use crate::settings::{Environment, Flags, Server};
use crate::telemetry::{LogMode, Redactor, settings_secrets};
use crate::terminal::console;
use crate::terminal::text_table::sanitize_text;
use clap::Args;
use futures_util::stream::{FuturesOrdered, StreamExt};
use octo_model::{Json, Kind, ToolError};
use octo_toolkit::{ListingState, Source, SourceState};
use octo_upstream::ServerStatus;
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};
use tools_servers::ServerEntry;

/// Time from the start for a second attempt after a failure: the server may be legacy, which the retry detects.
const RETRY_TIMEOUT: Duration = Duration::from_secs(5);
/// Typical for JSON in the tokenizers of large models.
const BYTES_PER_TOKEN: usize = 4;
const DEFAULT_TIMEOUT_SECONDS: u64 = 30;
/// Minimum wait, also for the last server.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// Connect to servers and list their tools. Problems are reported with a next step. Exit with code 6 if a server cannot be
/// used.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox servers test\n  octoprox servers test notion --tools")]
pub struct TestServers {
    /// Servers to test [default: all enabled servers]
    names: Vec<String>,
    /// Timeout per server, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT_SECONDS)]
    timeout: u64,
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
        Self { names: vec![name.to_owned()], timeout: DEFAULT_TIMEOUT_SECONDS, tools: false, json: false }
    }

    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
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
            let gateway = Gateway::start_uncached(&session, |name| {
                chosen.iter().any(|line| line.name == name && line.is_ready())
            })?;
            let mut sources = gateway.servers().all();
            let mut tries: FuturesOrdered<_> = chosen
                .into_iter()
                .map(|line| {
                    let known = sources.remove(&line.name);
                    let server = session.loaded.settings.servers.get(&line.name);
                    async move {
                        let listing = match (&known, server) {
                            (Some(known), Some(server)) => {
                                self.wait_for_listing(line, server, known, begun).await
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
        let find = |name: &String| {
            standing.iter().find(|line| line.name == *name).ok_or_else(|| {
                let error = ToolError::not_found(format!("Server not found: `{name}`."));
                let hint = match similar_server(name, standing.iter().map(|line| line.name.as_str())) {
                    Some(close) => format!("Did you mean `{close}`?"),
                    None => "Run `octoprox servers list` to see the servers.".to_owned(),
                };
                AppError::from(error.hint(hint))
            })
        };
        self.names.iter().map(find).collect()
    }

    /// Waits for the first listing of a server that started at `begun`.
    async fn wait_for_listing(
        &self,
        line: &ServerLine,
        server: &Server,
        known: &ServerEntry,
        begun: Instant,
    ) -> Result<ListingState, MessageAndHint> {
        let unlisted =
            || (known.disabled.clone().unwrap_or_default(), "Fix its entry in the settings.".to_owned());
        let mut listing = match (&known.upstream, &known.source) {
            (Some(upstream), _) => upstream.listing(),
            (None, Some(source)) => source.listing(),
            (None, None) => return Err(unlisted()),
        };
        let limit = begun + Duration::from_secs(self.timeout.max(1));
        let mut failed: Option<String> = None;
        let reached = loop {
            let now = listing.borrow_and_update().clone();
            match now.state {
                SourceState::Ready => break Ok(now),
                SourceState::Down(why) | SourceState::Off(why) => {
                    if is_final(&why) {
                        break Err(why);
                    }
                    failed = Some(why);
                    known.upstream.iter().for_each(|upstream| upstream.retry());
                }
                SourceState::Starting => {}
            }
            let until = if failed.is_some() { limit.min(begun + RETRY_TIMEOUT) } else { limit };
            let until = tokio::time::Instant::from_std(until.max(Instant::now() + MIN_WAIT));
            if begun.elapsed() > Duration::from_secs(self.timeout.max(1)) + MIN_WAIT
                || !matches!(tokio::time::timeout_at(until, listing.changed()).await, Ok(Ok(())))
            {
                let late = format!("server did not answer within {} s", self.timeout);
                break Err(failed.unwrap_or(late));
            }
        };
        reached.map_err(|why| {
            let next = advice(&line.name, server, &why);
            (why, next)
        })
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

/// Message and hint.
type MessageAndHint = (String, String);

/// Returns why a server was not started.
fn not_started(line: &ServerLine) -> MessageAndHint {
    (readiness_text(&line.status), sentence(line.status.reason().unwrap_or_default()))
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

fn readiness_text(status: &ServerStatus) -> String {
    let said = match status {
        ServerStatus::Off(_) => "it is disabled",
        ServerStatus::Waiting(_) => "an environment variable that it needs is not set",
        ServerStatus::Missing(_) => "its program was not found",
        ServerStatus::NeedsLogin(_) => "its login was lost",
        _ => "it cannot be used",
    };
    said.to_owned()
}

/// Capitalizes the first letter and adds a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// Returns whether a retry is pointless.
fn is_final(why: &str) -> bool {
    let refused = why.contains("HTTP status 4") && !why.contains("status 408") && !why.contains("status 429");
    why.contains("needs a login") || why.contains("os error 2)") || why.contains("os error 13)") || refused
}

/// Returns the hint for a server that cannot be reached.
fn advice(name: &str, server: &Server, why: &str) -> String {
    let by_hand = match (&server.command, &server.package) {
        (_, Some(package)) => format!("Check what {package} needs: variables, files or hosts in `sandbox`."),
        (Some(command), None) => {
            format!("Run it by hand to see the cause: {command} {}", server.args.join(" "))
        }
        (None, None) if server.document.is_some() => "Check `document` in the settings.".to_owned(),
        (None, None) => "Check `url`, and that the server is running.".to_owned(),
    };
    let said = |part: &str| why.contains(part);
    match &server.command {
        _ if said("needs a login") => match &server.auth {
            Some(auth) if auth.is_login() => format!("Run octoprox login {name}."),
            Some(auth) if login_spec::has_key(server, auth) => {
                "Check the key: the server rejects it.".to_owned()
            }
            Some(_) => format!("Run octoprox login {name}; it prompts for the API key."),
            None => {
                format!(
                    "Run octoprox login {name}. For an API key, set `auth: {{type: api-key, env: NAME}}`."
                )
            }
        },
        _ if said("is held.") => format!("Review the change, and accept it: octoprox servers diff {name}"),
        Some(command) if said("os error 2)") => {
            format!("Install `{command}`, or set `command` to its full path.")
        }
        Some(command) if said("os error 13)") => format!("Make `{command}` executable."),
        Some(_) if said("does not keep to the protocol") => {
            format!("It writes something other than MCP to standard output. {by_hand}")
        }
        None if said("status 404") || said("status 405") => {
            "No MCP server at this URL. Check its path; many end in /mcp.".to_owned()
        }
        None if said("status 5") => {
            "The server itself fails. Try again later, or contact its operator.".to_owned()
        }
        None if said("ertificate") => "Check the host's certificate and the URL.".to_owned(),
        _ if said("did not answer within") => {
            format!(
                "The first start of a program can be slow: octoprox servers test {name} --timeout 120. {by_hand}"
            )
        }
        _ => by_hand,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_a_next_step() {
        let program =
            Server { command: Some("npx".into()), args: vec!["-y".into(), "x".into()], ..Server::default() };
        let address = Server { url: Some("https://x.test/mcp".into()), ..Server::default() };
        for (server, why, next) in [
            (
                &program,
                "server cannot be reached: npx: No such file or directory (os error 2)",
                "Install `npx`",
            ),
            (&program, "connection lost: the program has ended", "Run it by hand to see the cause: npx -y x"),
            (&program, "server did not answer within 30 s", "--timeout 120"),
            (&program, "a is held. The package has changed", "octoprox servers diff a"),
            (&address, "needs a login", "octoprox login a"),
            (&address, "server returned HTTP status 404: Not Found", "many end in /mcp"),
            (&address, "server returned HTTP status 503: busy", "The server itself fails"),
            (&address, "server cannot be reached: connection refused", "Check `url`"),
        ] {
            assert!(advice("a", server, why).contains(next), "{why}");
        }
        assert!(is_final("needs a login") && is_final("server returned HTTP status 404: x"));
        assert!(!is_final("server returned HTTP status 429: x") && !is_final("connection lost: x"));
        assert_eq!(sentence("it is off"), "It is off.");
    }
}
