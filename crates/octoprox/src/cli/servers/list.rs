//! `octoprox servers list`, and how a server is doing as far as one can tell without asking it.

use crate::cli::doctor::lost_logins;
use crate::cli::failure::Failure;
use crate::cli::out;
use crate::cli::programs::which;
use crate::cli::session::settings;
use crate::cli::table::harmless_line;
use crate::cli::width::columns;
use crate::settings::{Flags, Loaded, Server, World, without_secrets};
use crate::telemetry::{Redactor, secrets};
use clap::Args;
use octo_upstream::login::LostLogin;
use serde::Serialize;
use serde_json::json;
use std::path::Path;

/// List the servers of the settings: status, target, and the file that defines each. Starts nothing; use `octoprox servers
/// test` to connect.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox servers list\n  octoprox servers list --json")]
pub struct List {
    /// Print as JSON: {servers: [{name, state, why, target, file, …}]}
    #[arg(long)]
    json: bool,
}

/// One server.
#[derive(Serialize)]
pub struct Line {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub state: State,
    /// What to do about it, when it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub kind: &'static str,
    pub target: String,
    pub connect: crate::settings::Connect,
    pub file: String,
}

/// Whether a server can be used, as far as one can tell without starting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing speaks against it.
    Ready,
    /// Switched off.
    Off,
    /// A variable is not set.
    Waiting,
    /// The program is not there.
    Missing,
    /// Somebody has to log in again.
    Lost,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Off => "off",
            Self::Waiting => "waiting",
            Self::Missing => "missing",
            Self::Lost => "lost",
        }
    }
}

impl List {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        let loaded = settings(flags)?;
        let world = World::real();
        let mut lines = lines(&loaded, &world);
        mark_lost(&mut lines, &lost_logins(&loaded, &world));
        if self.json {
            return Ok(out::data(&json!({"servers": lines}).to_string())?);
        }
        if lines.is_empty() {
            out::talk(
                "There are no servers. `octoprox servers add` adds one, `octoprox import` takes those of a client.",
            );
            return Ok(());
        }
        for line in lines.iter().filter(|line| line.state != State::Off) {
            if let Some(why) = &line.why {
                out::talk(&format!("{}: {why}", line.name));
            }
        }
        Ok(out::data(&shown(&lines, columns()))?)
    }
}

/// Says so of servers whose login here was lost; those of other callers are theirs to make again.
fn mark_lost(lines: &mut [Line], lost: &[LostLogin]) {
    for login in lost.iter().filter(|login| login.caller().is_none()) {
        let line = lines.iter_mut().find(|line| line.name == login.server && line.state == State::Ready);
        if let Some(line) = line {
            line.state = State::Lost;
            line.why = Some(format!("the login was lost: {} Run: {}", login.why, login.remedy()));
        }
    }
}

/// Every server of the settings.
pub fn lines(loaded: &Loaded, world: &World) -> Vec<Line> {
    let redactor = Redactor::new(secrets(loaded));
    let servers = loaded.settings.servers.iter();
    let line = |(name, server): (&String, &Server)| {
        let (state, why) = state(name, server, loaded, world);
        Line {
            name: name.clone(),
            title: server.name.clone(),
            state,
            why,
            kind: kind(server),
            target: harmless_line(&redactor.redact(&target(server))),
            connect: server.connect,
            file: loaded.layers.origin(&format!("servers.{name}")).to_string(),
        }
    };
    servers.map(line).collect()
}

fn state(name: &str, server: &Server, loaded: &Loaded, world: &World) -> (State, Option<String>) {
    if let Some(lacks) = loaded.missing.of(name) {
        return (State::Waiting, Some(format!("set {lacks} where octoprox is started")));
    }
    if !server.enabled {
        return (State::Off, Some("set `enabled: true` to use it".to_owned()));
    }
    let folder = server.cwd.as_deref().or(loaded.settings.workspace.as_deref()).unwrap_or(Path::new("/"));
    let own = server.env.get("PATH").map(|path| path.expose());
    match &server.command {
        Some(command) if which(command, own.or(world.variable("PATH")), folder).is_none() => {
            let remedy =
                format!("there is no program `{command}`; install it, or write its whole path as `command`");
            (State::Missing, Some(remedy))
        }
        _ => (State::Ready, None),
    }
}

const fn kind(server: &Server) -> &'static str {
    match (&server.command, &server.document) {
        (_, Some(_)) => "openapi",
        (Some(_), None) => "stdio",
        (None, None) => "http",
    }
}

/// How it is reached, without what is secret in it.
fn target(server: &Server) -> String {
    match (&server.command, &server.document, &server.url) {
        (Some(command), ..) => format!("{command} {}", server.args.join(" ")).trim_end().to_owned(),
        (None, Some(document), _) if !document.contains("://") => document.clone(),
        (None, Some(document), _) => without_secrets(document),
        (None, None, url) => url.as_deref().map(without_secrets).unwrap_or_default(),
    }
}

/// Name, state and target, each in its column; only the target is cut.
fn shown(lines: &[Line], width: usize) -> String {
    let first = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or_default();
    let room = width.saturating_sub(first + 11);
    let line = |line: &Line| {
        let target = &line.target;
        let cut = match target.char_indices().nth(room) {
            Some(_) => target.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
            None => target.clone(),
        };
        format!("{:first$}  {:7}  {cut}\n", line.name, line.state.word())
    };
    lines.iter().map(line).collect()
}
