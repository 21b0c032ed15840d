//! `octoprox fleet`: the nodes of the fleet.

use crate::app_context::{block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::fleet::{
    collect_all, duplicate_names, fleet_keys, metrics_of, no_fleet, server_service, workspace_service,
};
use crate::settings::Flags;
use crate::terminal::console;
use crate::terminal::text_table::sanitize_line;
use clap::{Args, Subcommand};
use octo_fabric::{AuditStatus, NodeStatus, ServiceStatus, StatusReply, new_nkey};
use octo_model::abbreviate;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum columns of a name: lines fit into 80 columns.
const MAX_NAME_WIDTH: usize = 36;

/// Show the nodes of the fleet.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox fleet status\n  octoprox fleet metrics laptop\n  octoprox fleet key laptop"
)]
pub struct FleetCommand {
    #[command(subcommand)]
    command: FleetSubcommand,
}

#[derive(Subcommand)]
enum FleetSubcommand {
    Status(Status),
    Metrics(Metrics),
    Key(Key),
    Nkey(Nkey),
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

/// Print the metrics of one node, in the text format of Prometheus.
///
/// Asks over NATS, since a worker listens on no port.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox fleet metrics laptop
  octoprox fleet metrics laptop > /var/lib/prometheus/node-exporter/laptop.prom")]
struct Metrics {
    /// Name of the node, as `octoprox fleet status` lists it
    node: String,
}

/// Print the key of a worker, for its `fleet.secret`.
///
/// Run it where the settings have the secret of the fleet. With its key, a worker can serve its workspace and these
/// servers, and speak for no other node.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox fleet key laptop\n  octoprox fleet key laptop --server files --server time"
)]
struct Key {
    /// Name of the workspace of the worker: its fleet.workspace
    workspace: String,
    /// Name of a server that the worker runs
    #[arg(long = "server", value_name = "NAME")]
    servers: Vec<String>,
}

impl Key {
    fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let settings = load_settings(flags)?.settings;
        let keys = fleet_keys(&settings)?.ok_or_else(|| {
            AppError::invalid(
                "fleet.secret is not set. Set it (OCTOPROX_FLEET_SECRET) to the output of `openssl rand -hex 32`.",
            )
        })?;
        let servers = self.servers.iter().map(|server| server_service(server));
        let services: Vec<_> = std::iter::once(workspace_service(&self.workspace)).chain(servers).collect();
        let key = keys.for_worker(&services);
        let key = key.map_err(|error| AppError::invalid(format!("fleet.secret {error}.")))?;
        Ok(console::print(key.expose())?)
    }
}

/// Make the key of a node for NATS: write its seed to a new file, and print the public key.
///
/// The seed is the `fleet.credentials` of the node. The public key is the `nkey` of its user in the configuration of the
/// NATS server.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox fleet nkey laptop.seed")]
struct Nkey {
    /// New file for the seed
    file: PathBuf,
}

impl Nkey {
    fn run(&self) -> Result<(), AppError> {
        let made = new_nkey().map_err(|error| AppError::new(format!("{error}.")))?;
        let (seed, public_key) = made;
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.file)
            .and_then(|mut file| file.write_all(format!("{}\n", seed.expose()).as_bytes()));
        written.map_err(|error| AppError::new(format!("cannot write {}: {error}.", self.file.display())))?;
        Ok(console::print(&public_key)?)
    }
}

impl Metrics {
    fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        if loaded.settings.fleet.nats.is_empty() {
            return Err(no_fleet("octoprox fleet metrics"));
        }
        let text = block_on_current_thread(metrics_of(&loaded.settings, &self.node))?;
        Ok(console::print(text.trim_end())?)
    }
}

impl FleetCommand {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        match &self.command {
            FleetSubcommand::Status(status) => status.run(flags),
            FleetSubcommand::Metrics(metrics) => metrics.run(flags),
            FleetSubcommand::Key(key) => key.run(flags),
            FleetSubcommand::Nkey(nkey) => nkey.run(),
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
        console::print(&table(&replies))?;
        for name in duplicate_names(&replies) {
            console::print_err(&format!(
                "Several nodes have the name `{name}`. Set store.node on each machine."
            ));
        }
        Ok(())
    }
}

fn json_line(StatusReply { status, round_trip }: &StatusReply) -> String {
    let NodeStatus { node, version, roles, uptime_seconds, services, audit } = status;
    let mut line = json!({
        "node": node, "version": version, "roles": roles, "uptime_seconds": uptime_seconds,
        "latency_ms": milliseconds(*round_trip), "services": services,
    });
    if let (Some(audit), Some(line)) = (audit, line.as_object_mut()) {
        line.insert("audit".to_owned(), json!(audit));
    }
    line.to_string()
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

/// One line per node, with its services below.
fn table(replies: &[StatusReply]) -> String {
    let name_len = |name: &str| name.chars().count().min(MAX_NAME_WIDTH);
    let width = replies.iter().map(|reply| name_len(&reply.status.node)).max().unwrap_or_default();
    let services = replies.iter().flat_map(|reply| &reply.status.services);
    let service_width = services.map(|service| name_len(&service.name)).max().unwrap_or_default();
    let mut lines = Vec::new();
    for StatusReply { status, round_trip } in replies {
        let NodeStatus { node, version, roles, uptime_seconds, services, audit } = status;
        lines.push(format!(
            "{:width$}  {:12}  {version}  up {}  {} ms",
            abbreviate(node, MAX_NAME_WIDTH),
            roles.join(","),
            duration_text(*uptime_seconds),
            milliseconds(*round_trip),
        ));
        for service in services {
            let state = match service {
                ServiceStatus { has_other_files: true, .. } => "refused: it has other files",
                ServiceStatus { is_serving: true, .. } => "serving",
                _ => "standby",
            };
            let token = service.token.map(|token| format!("  token {token}")).unwrap_or_default();
            let name = abbreviate(&service.name, MAX_NAME_WIDTH);
            lines.push(format!("  {name:service_width$}  {state}{token}"));
        }
        if let Some(AuditStatus { queued, lag_ms }) = audit.filter(|audit| audit.queued > 0) {
            lines.push(format!("  audit: {queued} records not committed, the oldest for {lag_ms} ms"));
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

    #[test]
    fn nodes_and_services_fit_into_lines() {
        let service = |name: &str, is_serving, token| ServiceStatus {
            name: name.to_owned(),
            is_serving,
            token,
            has_other_files: false,
        };
        let reply = |node: &str, uptime_seconds, services| StatusReply {
            status: NodeStatus {
                node: node.to_owned(),
                version: "0.1.0".to_owned(),
                roles: vec!["worker".to_owned()],
                uptime_seconds,
                services,
                audit: None,
            },
            round_trip: Duration::from_micros(640),
        };
        let services =
            vec![service("server/files", false, None), service("workspace/default", true, Some(17))];
        let long = "n".repeat(100);
        let mut front = reply(&long, 90_000, vec![service(&long, true, Some(u64::MAX))]);
        front.status.audit = Some(AuditStatus { queued: u64::from(u32::MAX), lag_ms: 86_400_000 });
        front.status.roles.push("front".to_owned());
        let replies = [reply("laptop", 59, services), reply("b\u{1b}[2J", 7_300, Vec::new())];
        assert_eq!(
            table(&replies),
            "laptop  worker        0.1.0  up 59s  0.6 ms\n  server/files       standby\n  \
             workspace/default  serving  token 17\nb\u{fffd}[2J   worker        0.1.0  up 2h  0.6 ms"
        );
        let text = table(&[front]);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("not committed"), "{text}");
    }
}
