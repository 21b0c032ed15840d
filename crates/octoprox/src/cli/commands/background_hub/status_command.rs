//! `octoprox status`: the background hubs.

use crate::app_error::AppError;
use crate::attach::hub_control::{BackgroundHub, background_hubs};
use crate::attach::hub_protocol::HubReport;
use crate::terminal::console;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use std::path::Path;

/// Show the background hubs: sessions, workspaces and servers.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox status\n  octoprox status --json")]
pub struct Status {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Status {
    pub fn run(&self) -> Result<(), AppError> {
        let hubs = background_hubs()?;
        if self.json {
            let hubs: Vec<HubStatus<'_>> = hubs.iter().map(HubStatus::of).collect();
            return Ok(console::print(&json!({"hubs": hubs}).to_string())?);
        }
        if hubs.is_empty() {
            return Ok(console::print("No background hub runs. `octoprox stdio` starts one.")?);
        }
        let texts: Vec<String> = hubs.iter().map(text).collect();
        Ok(console::print(&texts.join("\n"))?)
    }
}

/// One hub as JSON.
#[derive(Serialize)]
struct HubStatus<'a> {
    pid: i32,
    socket: &'a Path,
    log: &'a Path,
    /// Absent if it does not respond.
    #[serde(flatten)]
    report: &'a Option<HubReport>,
}

impl<'a> HubStatus<'a> {
    fn of(hub: &'a BackgroundHub) -> Self {
        Self { pid: hub.pid, socket: &hub.files.socket, log: &hub.files.log, report: &hub.report }
    }
}

fn text(hub: &BackgroundHub) -> String {
    let Some(report) = &hub.report else {
        return format!("Hub {} does not respond. Stop it with `octoprox stop`.", hub.pid);
    };
    let draining = if report.is_draining { ", hands over to a newer version" } else { "" };
    let mut lines = vec![
        format!(
            "Hub {} (octoprox {}, up {}{draining})",
            hub.pid,
            report.version,
            uptime(report.uptime_seconds)
        ),
        format!("  Program   {}", report.program.display()),
        format!("  Log       {}", hub.files.log.display()),
        format!("  Sessions  {}", report.sessions),
    ];
    for workspace in &report.workspaces {
        let folder =
            workspace.workspace.as_ref().map_or("no workspace".to_owned(), |path| path.display().to_string());
        let sessions =
            if workspace.sessions == 1 { "1 session" } else { &format!("{} sessions", workspace.sessions) };
        let servers: Vec<&str> = workspace.servers.iter().map(String::as_str).collect();
        let servers = match servers.as_slice() {
            [] => "no servers".to_owned(),
            servers => format!("servers: {}", servers.join(", ")),
        };
        lines.push(format!("  {folder}: {sessions}, {servers}"));
    }
    lines.join("\n")
}

fn uptime(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}
