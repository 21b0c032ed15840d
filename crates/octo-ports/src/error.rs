//! Errors of stores, and their only conversion to messages.

use crate::apis::MAX_APIS;
use crate::memory::MAX_FACTS;
use octo_model::{DEFAULT_RETRY_AFTER, Kind, ToolError};
use std::fmt;

/// Result of a store operation.
pub type StoreResult<T> = Result<T, StoreError>;

/// The stores.
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
    RateBuckets,
    Sessions,
    FleetRecords,
}

/// Limits that can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    Apis,
    Credentials,
    PendingLogins,
    SecretBytes,
    /// Exceeds the total size of all results.
    ResultBytes,
    /// Exceeds the share that is left beside the results of other callers.
    ResultShare,
    MemoryBytes(i64),
    /// Observations of the entity with this name.
    Facts(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// The record does not exist, or belongs to another caller.
    NotFound(Port),
    /// A concurrent change came first.
    Conflict(Port),
    Full(Limit),
    /// Too many changes are waiting to be written.
    Busy(Port),
    Unavailable {
        port: Port,
        why: String,
    },
    /// A record differs from what was written.
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
                Self::new(Kind::Internal, format!("The audit log is corrupt: {why}."))
                    .hint("Keep an unmodified copy of the file or database, and compare it with a backup.")
            }
            StoreError::Corrupt { port: Port::Credentials, why } => Self::unavailable(
                "The credential differs from the one that the hub stored: its record was modified.",
            )
            .hint(
                "Log in to the server again; the operator should find out who writes to the data directory or database.",
            )
            .detail(why),
            StoreError::SealMismatch { port: Port::Apis, name } => {
                Self::unavailable(format!("The credential of `{name}` cannot be decrypted."))
                    .hint("The hub's key has changed: load the API again with its credential.")
            }
            StoreError::SealMismatch { .. } => Self::unavailable(
                "The stored credentials are encrypted with another key.",
            )
            .hint(
                "The operator must restore the previous secret, or remove credentials.db (in a database, the rows of credentials, credential_revisions and pending_logins) and log in again.",
            ),
            StoreError::Corrupt { why, .. } | StoreError::Internal(why) => Self::internal(why),
        }
    }
}

fn not_found(port: Port) -> ToolError {
    match port {
        Port::Runs => ToolError::not_found("Run not found; it may have been removed.")
            .hint("Start a new one with the path of its workflow and without run_id."),
        Port::Results => ToolError::not_found("Result not found; it may have been removed.")
            .hint("Run the tool again; its reply has a new handle."),
        Port::AuditReader => ToolError::not_found("Audit log not found.").hint(
            "It is created by the first call; check that this is the hub's data directory or database.",
        ),
        _ => ToolError::not_found("Record not found; it may have been removed."),
    }
}

fn conflict(port: Port) -> ToolError {
    let error = |message: &'static str| ToolError::new(Kind::Conflict, message);
    match port {
        Port::Runs => error("Another process is working on this run.")
            .hint("Call again without redo, skip and resume to see its state."),
        Port::Credentials => error("The credential was changed concurrently.").hint("Try again."),
        _ => error("It was changed concurrently.").hint("Try again."),
    }
}

fn full(limit: &Limit) -> ToolError {
    let (message, hint) = match limit {
        Limit::Apis => (
            format!("The limit of {MAX_APIS} loaded APIs is reached."),
            "Unload one that is no longer needed with openapi_unload.",
        ),
        Limit::Credentials | Limit::PendingLogins => (
            "Too many stored credentials or pending logins.".to_owned(),
            "Log out of servers that are no longer used, or wait until unfinished logins expire.",
        ),
        Limit::SecretBytes => {
            return ToolError::new(Kind::TooLarge, "The credential is too long to be stored.");
        }
        Limit::ResultBytes => (
            "The result exceeds the size of the result store.".to_owned(),
            "Ask for less at a time, or raise the quota of stored results.",
        ),
        Limit::ResultShare => (
            "The result exceeds the room beside the results of other callers.".to_owned(),
            "Ask for less at a time.",
        ),
        Limit::MemoryBytes(quota) => (
            format!("The memory is full: its limit is {quota} bytes."),
            "Delete what is no longer needed, with erase, and try again.",
        ),
        Limit::Facts(name) => (
            format!("`{name}` has {MAX_FACTS} observations, which is the limit for one entity."),
            "Add further ones to new entities and relate them, or forget some.",
        ),
    };
    ToolError::new(Kind::TooLarge, message).hint(hint)
}

fn busy(port: Port) -> ToolError {
    let message = match port {
        Port::Audit => "Too many calls are waiting to be recorded.",
        Port::Memory => "Too many memory changes are waiting to be written.",
        _ => "Too many changes are waiting to be written.",
    };
    ToolError::unavailable(message)
        .hint("Try again in a moment, with fewer calls at once.")
        .retry_after(DEFAULT_RETRY_AFTER)
}

fn unavailable(port: Port) -> ToolError {
    let message = match port {
        Port::Audit | Port::AuditReader => "The call could not be recorded, so it was not made.",
        Port::Results => "The whole result could not be stored.",
        Port::Pins => "The pins of server definitions cannot be read or written.",
        Port::Runs => "Workflow runs cannot be read or written.",
        Port::Credentials => "Credentials cannot be read or written.",
        Port::Listings => "Server listings cannot be read or written.",
        Port::Apis => "Loaded APIs cannot be read or written.",
        Port::Memory => "The memory cannot be read or written.",
        Port::Leases => "Leases cannot be read or written.",
        Port::RateBuckets => "Rate limits cannot be read or written.",
        Port::Sessions => "Sessions cannot be read or written.",
        Port::FleetRecords => "Records of the fleet cannot be read or written.",
    };
    let hint = match port {
        Port::Results => "Ask for less at a time; the hub's disk or database may be full.",
        Port::Memory => {
            "Try again; if it persists, the operator must check the data directory or database, which may be full or unreachable."
        }
        _ => "The operator must check the data directory or database, which may be full or unreachable.",
    };
    ToolError::unavailable(message).hint(hint)
}
