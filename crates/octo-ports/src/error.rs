//! Why a store did not do what it was asked, and the one place that says it in words.

use crate::apis::MAX_APIS;
use crate::memory::MAX_FACTS;
use octo_model::{Kind, ToolError};
use std::fmt;
use std::time::Duration;

/// What a store answers.
pub type StoreResult<T> = Result<T, StoreError>;

/// What a store keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Port {
    Audit,
    AuditReader,
    Results,
    Pins,
    Runs,
    Credentials,
    Listings,
    Apis,
    Memory,
    Leases,
}

/// What there is no more room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    Apis,
    Credentials,
    PendingLogins,
    SecretBytes,
    /// More than all results together may take.
    ResultBytes,
    /// More than is left beside the results of others.
    ResultShare,
    MemoryBytes(i64),
    /// Observations of the entity with this name.
    Facts(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// There is no such record, or it is somebody else's.
    NotFound(Port),
    /// Somebody else was first.
    Conflict(Port),
    Full(Limit),
    /// Too many changes wait to be written.
    Busy(Port),
    Unavailable {
        port: Port,
        why: String,
    },
    /// A record is not what was written.
    Corrupt {
        port: Port,
        why: String,
    },
    /// A secret is sealed with another key, or was changed.
    SealMismatch {
        port: Port,
        name: String,
    },
    Internal(String),
}

impl StoreError {
    pub fn unavailable(port: Port, why: impl fmt::Display) -> Self {
        Self::Unavailable { port, why: why.to_string() }
    }

    pub fn corrupt(port: Port, why: impl fmt::Display) -> Self {
        Self::Corrupt { port, why: why.to_string() }
    }

    pub fn internal(why: impl fmt::Display) -> Self {
        Self::Internal(why.to_string())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ToolError::from(self.clone()).fmt(f)
    }
}

impl std::error::Error for StoreError {}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(port) => not_found(port),
            StoreError::Conflict(port) => conflict(port),
            StoreError::Full(limit) => full(&limit),
            StoreError::Busy(port) => busy(port),
            StoreError::Unavailable { port: Port::AuditReader, why } => {
                Self::new(Kind::Internal, format!("The audit log cannot be read: {why}"))
            }
            StoreError::Unavailable { port, why } => unavailable(port).detail(why),
            StoreError::Corrupt { port: Port::AuditReader, why } => {
                Self::new(Kind::Internal, format!("The audit log cannot be believed: {why}."))
                    .hint("Keep a copy of the file as it is, and compare it with a backup.")
            }
            StoreError::Corrupt { port: Port::Credentials, why } => {
                Self::unavailable("The credential is not the one that the hub has kept: its file was changed.")
                    .hint("Log in to the server again; whoever runs the hub should find out who writes to its data directory.")
                    .detail(why)
            }
            StoreError::SealMismatch { port: Port::Apis, name } => {
                Self::unavailable(format!("The credential of `{name}` cannot be opened."))
                    .hint("The hub's key has changed: load the API again, with its credential.")
            }
            StoreError::SealMismatch { .. } => {
                Self::unavailable("The credentials of servers are sealed with another key.").hint(
                    "Whoever runs the hub must give the secret that was used before, or remove credentials.db and log in again.",
                )
            }
            StoreError::Corrupt { why, .. } | StoreError::Internal(why) => Self::internal(why),
        }
    }
}

fn not_found(port: Port) -> ToolError {
    match port {
        Port::Runs => ToolError::not_found("There is no such run, or no longer.")
            .hint("Begin a new one with the path of its workflow and without run_id."),
        Port::Results => ToolError::not_found("There is no result under this handle, or no longer.")
            .hint("Run the tool again; its answer has a new handle."),
        Port::AuditReader => ToolError::not_found("There is no audit log.")
            .hint("It is made with the first call; check that this is the hub's data directory."),
        _ => ToolError::not_found("There is no such record, or no longer."),
    }
}

fn conflict(port: Port) -> ToolError {
    let error = |message: &'static str| ToolError::new(Kind::Conflict, message);
    match port {
        Port::Runs => error("Another process works on this run at this moment.")
            .hint("Ask for it again without redo, skip and resume to see how it is doing."),
        Port::Credentials => {
            error("The credential was changed by somebody else in the meantime.").hint("Try again.")
        }
        _ => error("Somebody else has changed it in the meantime.").hint("Try again."),
    }
}

fn full(limit: &Limit) -> ToolError {
    let (message, hint) = match limit {
        Limit::Apis => (
            format!("{MAX_APIS} APIs are loaded already."),
            "Unload one that is no longer needed with openapi_unload.",
        ),
        Limit::Credentials | Limit::PendingLogins => (
            "Too many credentials are kept, or too many logins wait.".to_owned(),
            "Log out of servers that are no longer used, or wait until logins that nobody has finished have expired.",
        ),
        Limit::SecretBytes => {
            return ToolError::new(Kind::TooLarge, "The credential is too long to be kept.");
        }
        Limit::ResultBytes => (
            "The result is larger than all that may be kept.".to_owned(),
            "Ask for less at a time, or raise the quota of spills.",
        ),
        Limit::ResultShare => (
            "The result is larger than what is left for it beside the results of others.".to_owned(),
            "Ask for less at a time.",
        ),
        Limit::MemoryBytes(quota) => (
            format!("The memory is full: it may hold {quota} bytes."),
            "Delete what is no longer needed, with erase, and try again.",
        ),
        Limit::Facts(name) => (
            format!("`{name}` has {MAX_FACTS} observations, which is all that one entity may have."),
            "Put further ones on entities of their own and relate them, or forget some.",
        ),
    };
    ToolError::new(Kind::TooLarge, message).hint(hint)
}

fn busy(port: Port) -> ToolError {
    let message = match port {
        Port::Audit => "Too many calls wait to be recorded.",
        Port::Memory => "Too many changes of memories wait to be written.",
        _ => "Too many changes wait to be written.",
    };
    ToolError::unavailable(message)
        .hint("Try again in a moment, with fewer calls at once.")
        .retry_after(Duration::from_secs(1))
}

fn unavailable(port: Port) -> ToolError {
    let message = match port {
        Port::Audit | Port::AuditReader => "The call could not be recorded, so it was not made.",
        Port::Results => "The whole result could not be kept.",
        Port::Pins => "What servers have listed before cannot be read or written.",
        Port::Runs => "The runs of workflows cannot be read or written.",
        Port::Credentials => "The credentials of servers cannot be read or written.",
        Port::Listings => "The lists of the servers cannot be read or written.",
        Port::Apis => "The loaded APIs cannot be read or written.",
        Port::Memory => "The memory cannot be read or written.",
        Port::Leases => "Leases cannot be read or written.",
    };
    let hint = match port {
        Port::Results => "Ask for less at a time; the hub's disk may be full.",
        Port::Memory => {
            "Try again; whoever runs the hub must look at its data directory if it goes on: the disk may be full."
        }
        _ => "Whoever runs the hub must look at its data directory: the disk may be full.",
    };
    ToolError::unavailable(message).hint(hint)
}
