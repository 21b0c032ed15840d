//! First lines on a hub's socket: what the other side wants, and the reply. Messages of MCP or queries follow.

use super::program_file::ProgramFile;
use crate::app_error::AppError;
use crate::settings::{Environment, Flags};
use octo_hub::ListOptions;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Version of this exchange. A hub hands its sessions over only to a program with the same one.
pub const PROTOCOL_VERSION: u32 = 1;

/// Opens a connection.
#[derive(Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub purpose: Purpose,
}

impl Hello {
    pub fn new(purpose: Purpose) -> Self {
        Self { protocol: PROTOCOL_VERSION, purpose }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// MCP for a client.
    Session(SessionRequest),
    /// Calls and lists of a command.
    Queries(SessionRequest),
    Status,
}

/// The surroundings of a session, as its own process would have them.
#[derive(Serialize, Deserialize)]
pub struct SessionRequest {
    pub profile: String,
    /// What the session is listed.
    #[serde(default)]
    pub options: ListOptions,
    pub current_dir: PathBuf,
    pub variables: BTreeMap<String, String>,
    pub config: Option<PathBuf>,
    pub servers: Option<PathBuf>,
}

impl SessionRequest {
    pub fn new(world: &Environment, flags: &Flags, profile: &str, options: ListOptions) -> Self {
        Self {
            profile: profile.to_owned(),
            options,
            current_dir: world.current_dir.clone(),
            variables: world.variables.clone(),
            config: flags.config.clone(),
            servers: flags.servers.clone(),
        }
    }

    pub fn environment(&self) -> Environment {
        Environment { variables: self.variables.clone(), current_dir: self.current_dir.clone() }
    }

    pub fn flags(&self) -> Flags {
        Flags { config: self.config.clone(), servers: self.servers.clone(), ..Flags::default() }
    }
}

/// Reply to a hello.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct HelloReply {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<HubReport>,
    /// Proves that a request to leave comes from the hub: servers can send notifications of any name to a client.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub drain_token: String,
    /// What the process of the session should print about its settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// Why a session cannot begin, as its own process would report it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Refusal {
    pub code: u8,
    pub text: String,
}

impl From<&AppError> for Refusal {
    fn from(error: &AppError) -> Self {
        Self { code: error.code(), text: error.text().to_owned() }
    }
}

impl From<Refusal> for AppError {
    fn from(refusal: Refusal) -> Self {
        Self::with_code(refusal.code, refusal.text)
    }
}

/// State of a running hub.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HubReport {
    pub version: String,
    pub program: PathBuf,
    pub uptime_seconds: u64,
    /// Open MCP sessions.
    pub sessions: usize,
    pub workspaces: Vec<WorkspaceReport>,
    /// Whether it waits for its sessions to move to a newer program.
    pub is_draining: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkspaceReport {
    /// The directory, unless there is none.
    pub workspace: Option<PathBuf>,
    pub sessions: usize,
    pub servers: BTreeSet<String>,
}

/// Params of the notification that asks a session to leave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainParams {
    /// The token that the session got when it attached.
    #[serde(default)]
    pub token: String,
    /// The newer program, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successor: Option<ProgramFile>,
}

/// One message as a line.
pub fn to_line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

pub fn from_line<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}
