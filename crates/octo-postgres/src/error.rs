//! Errors of connections and statements.

use octo_model::ToolError;
use octo_ports::{Port, SecretError, StoreError};
use std::error::Error;
use std::io;
use tokio_postgres::error::SqlState;

#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error("{}", .0.message)]
    Address(ToolError),
    #[error("{0}")]
    Secret(SecretError),
    #[error("`{0}` is not a name of a schema")]
    SchemaName(String),
    #[error("`{0}` is not a name of a node")]
    NodeName(String),
    #[error("no thread for the audit log: {0}")]
    Thread(io::Error),
    #[error("the database cannot be reached: {0}")]
    Unreachable(io::Error),
    #[error("the database cannot be reached: no answer within the connect timeout")]
    ConnectTimeout,
    #[error("no host of the database accepts writes: each one is a standby")]
    NoPrimary,
    #[error("the database did not answer in time")]
    Timeout,
    #[error("all connections to the database are in use")]
    Exhausted,
    #[error("the connection to the database was lost: {0}")]
    Disconnected(String),
    #[error("the database refused: {0}")]
    Refused(String),
    #[error("the tables of schema `{schema}` do not exist or are older than this octoprox")]
    NotMigrated { schema: String },
    #[error(
        "the tables of schema `{schema}` were written by a newer octoprox, which this one cannot share them with"
    )]
    Newer { schema: String },
}

impl PostgresError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Address(_) => "Use postgres://user:password@host:5432/database?sslmode=require.",
            Self::Secret(_) => {
                "Use the same long secret on all hubs, such as the output of `openssl rand -hex 32`."
            }
            Self::SchemaName(_) => "Use up to 63 lowercase letters, digits and underscores.",
            Self::NodeName(_) => "Use up to 200 bytes without control characters.",
            Self::Thread(_) => "Check the limits of threads and memory of this process.",
            Self::Unreachable(_) | Self::ConnectTimeout | Self::Disconnected(_) => {
                "Check that the database runs, and its host, port and TLS mode in the settings."
            }
            Self::NoPrimary => "Wait until the failover has finished, or add the host of the primary.",
            Self::Timeout => "Check the load of the database, and long transactions in pg_stat_activity.",
            Self::Exhausted => "Try again in a moment, or raise the number of connections.",
            Self::Refused(_) => "Check the user's rights and the log of the database.",
            Self::NotMigrated { .. } => "Migrate the database once, then start the hub.",
            Self::Newer { .. } => "Upgrade this octoprox.",
        }
    }

    /// Whether the session can be used after it.
    pub(crate) fn ends_session(error: &tokio_postgres::Error) -> bool {
        error.code().is_none_or(is_fatal)
    }

    pub(crate) fn into_store_error(self, port: Port) -> StoreError {
        match self {
            Self::Exhausted => StoreError::Busy(port),
            Self::NotMigrated { .. } | Self::Newer { .. } => {
                StoreError::unavailable(port, format_args!("{self}. {}", self.hint()))
            }
            _ => StoreError::unavailable(port, self),
        }
    }
}

/// States after which another session may succeed: shutdown, and a primary that has become a standby.
fn is_fatal(state: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ]
    .contains(state)
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(answer) = error.as_db_error() else {
            return Self::Disconnected(error.source().map_or_else(|| error.to_string(), ToString::to_string));
        };
        let text = format!("{} (SQLSTATE {})", answer.message(), answer.code().code());
        if is_fatal(answer.code()) { Self::Disconnected(text) } else { Self::Refused(text) }
    }
}
