//! Waits for the listing of a server. Failures have a hint.

use crate::app_error::AppError;
use crate::cli::commands::servers_command::list_servers::ServerLine;
use crate::cli::commands::servers_command::similar_server;
use crate::gateway::login_spec;
use crate::gateway::package_runner::broken_npx_cache;
use crate::settings::Server;
use octo_model::ToolError;
use octo_toolkit::{ListingState, Source, SourceState};
use octo_upstream::ServerStatus;
use std::time::{Duration, Instant};
use tools_servers::ServerEntry;

/// Time from the start for a second attempt after a failure: the server may be legacy, which the retry detects.
const RETRY_TIMEOUT: Duration = Duration::from_secs(5);
/// Minimum wait, also for the last server.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// Message and hint.
pub type MessageAndHint = (String, String);

/// Returns the server of this name.
pub fn find_line<'a>(name: &str, standing: &'a [ServerLine]) -> Result<&'a ServerLine, AppError> {
    standing.iter().find(|line| line.name == name).ok_or_else(|| {
        let error = ToolError::not_found(format!("Server not found: `{name}`."));
        let hint = match similar_server(name, standing.iter().map(|line| line.name.as_str())) {
            Some(close) => format!("Did you mean `{close}`?"),
            None => "Run `octoprox servers list` to see the servers.".to_owned(),
        };
        AppError::from(error.hint(hint))
    })
}

/// Waits for the first listing of a server that started at `begun`.
pub async fn wait_for_listing(
    line: &ServerLine,
    server: &Server,
    known: &ServerEntry,
    begun: Instant,
    timeout: Duration,
) -> Result<ListingState, MessageAndHint> {
    let unlisted =
        || (known.disabled.clone().unwrap_or_default(), "Fix its entry in the settings.".to_owned());
    let mut listing = match (&known.upstream, &known.source) {
        (Some(upstream), _) => upstream.listing(),
        (None, Some(source)) => source.listing(),
        (None, None) => return Err(unlisted()),
    };
    let limit = begun + timeout;
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
        if begun.elapsed() > timeout + MIN_WAIT
            || !matches!(tokio::time::timeout_at(until, listing.changed()).await, Ok(Ok(())))
        {
            let late = format!("server did not answer within {} s", timeout.as_secs());
            break Err(failed.unwrap_or(late));
        }
    };
    reached.map_err(|why| {
        let next = advice(&line.name, server, &why);
        (why, next)
    })
}

/// Returns why a server was not started.
pub fn not_started(line: &ServerLine) -> MessageAndHint {
    (readiness_text(&line.status), sentence(line.status.reason().unwrap_or_default()))
}

fn readiness_text(status: &ServerStatus) -> String {
    let said = match status {
        ServerStatus::Off(_) => "it is disabled",
        ServerStatus::Waiting(_) => "a variable or secret that it needs is not set",
        ServerStatus::Missing(_) => "its program was not found",
        ServerStatus::NeedsLogin(_) => "its login was lost",
        _ => "it cannot be used",
    };
    said.to_owned()
}

/// Capitalizes the first letter and adds a full stop.
pub fn sentence(text: &str) -> String {
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
        _ if let Some(cache) = broken_npx_cache(server, why) => format!(
            "An earlier start of npx was interrupted and left its cache incomplete. Remove it, then try again: rm -r {cache}"
        ),
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
            (&program, "the process exited; last stderr output: requireStack: []", "rm -r ~/.npm/_npx"),
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
