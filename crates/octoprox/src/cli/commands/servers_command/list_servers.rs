//! `octoprox servers list`, and the status of servers without connecting to them.

use crate::app_context::load_settings;
use crate::app_error::AppError;
use crate::cli::commands::doctor_command::lost_logins;
use crate::gateway::{ServerStart, StartPlaces};
use crate::packages::InstalledPackage;
use crate::process::local_programs::which;
use crate::remedy_text::lost_login_text;
use crate::settings::{Environment, Flags, LoadedSettings, Server, mask_url};
use crate::telemetry::{Redactor, settings_secrets};
use crate::terminal::console;
use crate::terminal::terminal_width::columns;
use crate::terminal::text_table::sanitize_line;
use clap::Args;
use octo_grants::NEUTRAL_DIR;
use octo_oauth::LostLogin;
use octo_upstream::ServerStatus;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};

/// List the servers of the settings: status, target, and the file that defines each. Starts nothing; use `octoprox servers
/// test` to connect.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox servers list\n  octoprox servers list --json")]
pub struct List {
    /// Print as JSON: {servers: [{name, state, reason, target, file, …}]}
    #[arg(long)]
    json: bool,
}

/// Server in the list.
#[derive(Serialize)]
pub struct ServerLine {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Status as far as known without starting it.
    #[serde(flatten)]
    pub status: ServerStatus,
    pub kind: &'static str,
    pub target: String,
    pub connect: crate::settings::Connect,
    pub file: String,
    /// Directory in which its program starts, if the settings name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Whether tools can write that directory.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub writable_cwd: bool,
}

impl ServerLine {
    pub fn is_off(&self) -> bool {
        matches!(self.status, ServerStatus::Off(_))
    }

    /// What the directory in which its program starts means, if tools can write it.
    pub fn start_note(&self) -> Option<String> {
        let dir = self.cwd.as_ref().filter(|_| self.writable_cwd)?;
        Some(format!(
            "starts in {}, where tools can write: files there decide what it runs",
            sanitize_line(&dir.display().to_string())
        ))
    }

    pub fn is_ready(&self) -> bool {
        self.status == ServerStatus::Ready
    }
}

impl List {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        let world = Environment::current();
        let mut lines = server_lines(&loaded, &world);
        mark_lost_logins(&mut lines, &lost_logins(&loaded, &world));
        if self.json {
            return Ok(console::print(&json!({"servers": lines}).to_string())?);
        }
        if lines.is_empty() {
            console::print_err(
                "No servers configured. Add one with `octoprox add`, or import those of a client with `octoprox import`.",
            );
            return Ok(());
        }
        for line in lines.iter().filter(|line| !line.is_off()) {
            let notes = line.status.reason().map(str::to_owned).into_iter().chain(line.start_note());
            notes.for_each(|note| console::print_err(&format!("{}: {note}", line.name)));
        }
        Ok(console::print(&render_lines(&lines, columns()))?)
    }
}

/// Marks servers whose login of the local user was lost. Logins of other callers are ignored.
fn mark_lost_logins(lines: &mut [ServerLine], lost: &[LostLogin]) {
    for login in lost.iter().filter(|login| login.caller().is_none()) {
        let line = lines.iter_mut().find(|line| line.name == login.server && line.is_ready());
        if let Some(line) = line {
            let why = format!("login lost: {} Run: {}", login.reason, lost_login_text(login));
            line.status = ServerStatus::NeedsLogin(Some(why));
        }
    }
}

/// Returns every server of the settings.
pub fn server_lines(loaded: &LoadedSettings, world: &Environment) -> Vec<ServerLine> {
    let redactor = Redactor::new(settings_secrets(loaded));
    let servers = loaded.settings.servers.iter();
    let places = StartPlaces::new(&loaded.settings, world);
    let line = |(name, server): (&String, &Server)| {
        let start = places.start(name, server);
        ServerLine {
            name: name.clone(),
            title: server.name.clone(),
            status: status(name, server, &start, loaded, world),
            kind: kind(server),
            target: sanitize_line(&redactor.redact(&display_target(server))),
            connect: server.connect,
            file: loaded.layers.origin(&format!("servers.{name}")).to_string(),
            cwd: start.chosen_dir().filter(|_| server.is_program()).map(Path::to_owned),
            writable_cwd: server.is_program() && start.writable_dir().is_some(),
        }
    };
    servers.map(line).collect()
}

fn status(
    name: &str,
    server: &Server,
    start: &ServerStart,
    loaded: &LoadedSettings,
    world: &Environment,
) -> ServerStatus {
    if let Some(remedy) = loaded.unset_variables.remedy(name) {
        return ServerStatus::Waiting(remedy);
    }
    if !server.enabled {
        return ServerStatus::Off("set `enabled: true` to use it".to_owned());
    }
    if let Some(why) = start.refusal().filter(|_| server.is_program()) {
        return ServerStatus::Down(why.text());
    }
    if let Some(package) = &server.package {
        let state = loaded.settings.state_dir.as_deref().zip(server.digest.as_deref());
        return match state.and_then(|(state, digest)| InstalledPackage::find(state, digest, package)) {
            Some(_) => ServerStatus::Ready,
            None => ServerStatus::Missing(format!(
                "package {package} is not installed; run: octoprox servers install {name}"
            )),
        };
    }
    let folder = start.working_dir();
    let folder = folder.as_deref().unwrap_or(Path::new(NEUTRAL_DIR));
    let own = server.env.get("PATH").map(|path| path.expose());
    match &server.command {
        Some(command) if which(command, own.or(world.variable("PATH")), folder).is_none() => {
            ServerStatus::Missing(format!(
                "program not found: `{command}`; install it, or set `command` to its full path"
            ))
        }
        _ => ServerStatus::Ready,
    }
}

fn kind(server: &Server) -> &'static str {
    match &server.document {
        Some(_) => "openapi",
        None if server.is_program() => "stdio",
        None => "http",
    }
}

/// Command or URL of the server, without secrets.
fn display_target(server: &Server) -> String {
    if let Some(package) = &server.package {
        return format!("{package} {}", server.args.join(" ")).trim_end().to_owned();
    }
    match (&server.command, &server.document, &server.url) {
        (Some(command), ..) => format!("{command} {}", server.args.join(" ")).trim_end().to_owned(),
        (None, Some(document), _) if !document.contains("://") => document.clone(),
        (None, Some(document), _) => mask_url(document),
        (None, None, url) => url.as_deref().map(mask_url).unwrap_or_default(),
    }
}

/// Renders name, status and target in columns; only the target is truncated.
fn render_lines(lines: &[ServerLine], width: usize) -> String {
    let first = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or_default();
    let second = lines.iter().map(|line| line.status.as_str().len()).max().unwrap_or_default().max(7);
    let room = width.saturating_sub(first + second + 4);
    let line = |line: &ServerLine| {
        let target = &line.target;
        let cut = match target.char_indices().nth(room) {
            Some(_) => target.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
            None => target.clone(),
        };
        format!("{:first$}  {:second$}  {cut}\n", line.name, line.status.as_str())
    };
    lines.iter().map(line).collect()
}
