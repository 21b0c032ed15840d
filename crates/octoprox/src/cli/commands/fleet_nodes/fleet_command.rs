//! `octoprox fleet`: the nodes of the fleet.

use crate::app_context::{block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::fleet::{collect_all, no_fleet};
use crate::settings::Flags;
use crate::terminal::console;
use crate::terminal::text_table::sanitize_line;
use clap::{Args, Subcommand};
use octo_fabric::{NodeStatus, StatusReply};
use serde_json::json;
use std::time::Duration;

/// Show the nodes of the fleet.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox fleet status\n  octoprox fleet status --json")]
pub struct FleetCommand {
    #[command(subcommand)]
    command: FleetSubcommand,
}

#[derive(Subcommand)]
enum FleetSubcommand {
    Status(Status),
}

/// List the nodes that answer: roles, version, latency, and what each worker serves.
///
/// A service is marked `standby` at the workers that would take over.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox fleet status\n  octoprox fleet status --json")]
struct Status {
    /// Print one JSON object per node
    #[arg(long)]
    json: bool,
}

impl FleetCommand {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        match &self.command {
            FleetSubcommand::Status(status) => status.run(flags),
        }
    }
}

impl Status {
    fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        if loaded.settings.fleet.nats.is_empty() {
            return Err(no_fleet("octoprox fleet status"));
        }
        let replies = block_on_current_thread(collect_all(&loaded.settings))?;
        if self.json {
            return replies.iter().try_for_each(|reply| Ok(console::print(&json_line(reply))?));
        }
        if replies.is_empty() {
            console::print_err("No node answers. Start one with `octoprox serve` or `octoprox worker`.");
            return Ok(());
        }
        Ok(console::print(&table(&replies))?)
    }
}

fn json_line(StatusReply { status, round_trip }: &StatusReply) -> String {
    let NodeStatus { node, version, roles, uptime_seconds, services } = status;
    json!({
        "node": node, "version": version, "roles": roles, "uptime_seconds": uptime_seconds,
        "latency_ms": milliseconds(*round_trip), "services": services,
    })
    .to_string()
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

/// One line per node, with its services below.
fn table(replies: &[StatusReply]) -> String {
    let width = replies.iter().map(|reply| reply.status.node.chars().count()).max().unwrap_or_default();
    let mut lines = Vec::new();
    for StatusReply { status, round_trip } in replies {
        let NodeStatus { node, version, roles, uptime_seconds, services } = status;
        lines.push(format!(
            "{node:width$}  {:12}  {version}  up {}  {} ms",
            roles.join(","),
            duration_text(*uptime_seconds),
            milliseconds(*round_trip),
        ));
        for service in services {
            let state = if service.is_serving { "serving" } else { "standby" };
            let token = service.token.map(|token| format!(", token {token}")).unwrap_or_default();
            lines.push(format!("  {}  {state}{token}", service.name));
        }
    }
    lines.iter().map(|line| sanitize_line(line)).collect::<Vec<_>>().join("\n")
}

fn duration_text(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_fabric::ServiceStatus;

    #[test]
    fn nodes_and_services_fit_into_lines() {
        let service =
            |name: &str, is_serving, token| ServiceStatus { name: name.to_owned(), is_serving, token };
        let reply = |node: &str, uptime_seconds, services| StatusReply {
            status: NodeStatus {
                node: node.to_owned(),
                version: "0.1.0".to_owned(),
                roles: vec!["worker".to_owned()],
                uptime_seconds,
                services,
            },
            round_trip: Duration::from_micros(640),
        };
        let services =
            vec![service("server/files", false, None), service("workspace/default", true, Some(17))];
        let replies = [reply("laptop", 59, services), reply("b\u{1b}[2J", 7_300, Vec::new())];
        assert_eq!(
            table(&replies),
            "laptop  worker        0.1.0  up 59s  0.6 ms\n  server/files  standby\n  \
             workspace/default  serving, token 17\nb\u{fffd}[2J   worker        0.1.0  up 2h  0.6 ms"
        );
    }
}
