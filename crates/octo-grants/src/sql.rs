//! Configured databases. A tool selects one by name; address and credentials are known only here.

mod auth;
mod db_address;
mod db_session;
mod db_stream;
mod db_tls;
mod dsn;
mod dsn_list;
mod lease;
mod pool;
mod server_error;

pub use db_address::DbAddress;
pub use db_session::TransactionState;
pub use dsn_list::parse_list;
pub use lease::Lease;
pub use pool::Pool;
pub use server_error::ServerError;

use crate::{Capabilities, Grant, Net};
use dsn::Login;
use octo_model::{Secret, ToolError};
use pool::PoolMode;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Settings of one database connection.
#[derive(Debug, Clone)]
pub struct SqlConnection {
    pub name: String,
    /// `postgres://user:password@host:port/database?sslmode=…`, or the same as key-value pairs.
    pub dsn: Secret,
    /// Separate credentials for read-only use: a role that the database itself prevents from writing.
    pub reader: Option<Secret>,
    /// Refuses changes through this connection.
    pub read_only: bool,
    /// Accepts a role that a read-only transaction does not confine: superusers, and roles with access to files,
    /// programs or other sessions of the server.
    pub superuser: bool,
}

impl SqlConnection {
    pub fn new(name: impl Into<String>, dsn: impl Into<String>) -> Self {
        Self { name: name.into(), dsn: Secret::new(dsn), reader: None, read_only: false, superuser: false }
    }
}

/// Configured databases and their limits.
#[derive(Debug, Clone)]
pub struct SqlSpec {
    pub connections: Vec<SqlConnection>,
    /// Refuses changes through every connection.
    pub read_only: bool,
    /// Maximum statement timeout that a caller may request.
    pub statement_timeout: Duration,
    /// Maximum rows per reply that a caller may request.
    pub max_rows: usize,
    /// Maximum bytes per reply, as sent by the server.
    pub max_bytes: usize,
    /// Maximum concurrent sessions per login.
    pub sessions: usize,
    /// Egress for the connections.
    pub net: Net,
}

impl Default for SqlSpec {
    fn default() -> Self {
        Self {
            connections: Vec::new(),
            read_only: false,
            statement_timeout: Duration::from_secs(300),
            max_rows: 10_000,
            max_bytes: 16 << 20,
            sessions: 8,
            net: Net::default(),
        }
    }
}

/// Limits that a caller cannot raise.
#[derive(Debug, Clone, Copy)]
pub struct SqlLimits {
    pub statement_timeout: Duration,
    pub max_rows: usize,
    pub max_bytes: usize,
}

/// Database type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Postgres,
}

impl Dialect {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Postgres => "postgresql",
        }
    }
}

/// Databases by name.
#[derive(Clone)]
pub struct Sql(Arc<Vec<Arc<Database>>>);

/// A database and its session pools.
pub struct Database {
    /// Unique within the process.
    pub id: u64,
    pub name: String,
    pub dialect: Dialect,
    /// Excludes user and password.
    pub host: String,
    pub database: String,
    pub read_only: bool,
    pub limits: SqlLimits,
    /// Sessions whose transactions are read-only by default.
    pub reads: Pool,
    /// Sessions that may write; `None` for a read-only connection.
    pub writes: Option<Pool>,
}

/// Connection name of a call that specifies none.
pub const DEFAULT_CONNECTION: &str = "default";

impl Sql {
    /// Parses the connection strings. Connects on the first call.
    pub fn new(spec: &SqlSpec) -> Result<Self, ToolError> {
        let databases: Result<Vec<_>, ToolError> =
            spec.connections.iter().map(|connection| database(connection, spec).map(Arc::new)).collect();
        let databases = databases?;
        for (at, database) in databases.iter().enumerate() {
            if databases.iter().skip(at + 1).any(|other| other.name == database.name) {
                return Err(ToolError::invalid(format!("Duplicate database name `{}`.", database.name)));
            }
        }
        Ok(Self(Arc::new(databases)))
    }

    /// Returns the connection with this name. A single connection is also the default.
    pub fn named(&self, name: &str) -> Result<Arc<Database>, ToolError> {
        let only = match self.0.as_slice() {
            [only] if name == DEFAULT_CONNECTION => Some(only),
            _ => None,
        };
        self.0.iter().find(|database| database.name == name).or(only).cloned().ok_or_else(|| {
            let names: Vec<&str> = self.0.iter().map(|database| database.name.as_str()).collect();
            ToolError::not_found(format!("Database connection not found: `{name}`.")).hint(
                if names.is_empty() {
                    "None is configured; ask the operator.".to_owned()
                } else {
                    format!("Use one of: {}.", names.join(", "))
                },
            )
        })
    }

    pub fn all(&self) -> &[Arc<Database>] {
        &self.0
    }
}

fn database(connection: &SqlConnection, spec: &SqlSpec) -> Result<Database, ToolError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = &connection.name;
    if !dsn_list::is_name(name) {
        return Err(ToolError::invalid(
            "The name of a database connection may contain only letters, digits, - and _.",
        )
        .hint("Write it as name=dsn."));
    }
    let login = Login::parse(name, &connection.dsn, &spec.net)?;
    let reader = match &connection.reader {
        Some(dsn) => Login::parse(name, dsn, &spec.net)?,
        None => login.clone(),
    };
    let read_only = spec.read_only || connection.read_only;
    let pool = |login, purpose| {
        Pool::new(name, login, purpose, spec.sessions.max(1), connection.superuser, spec.max_bytes)
    };
    Ok(Database {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        name: name.clone(),
        dialect: Dialect::Postgres,
        host: login.host_text(),
        database: login.database.clone(),
        read_only,
        limits: SqlLimits {
            statement_timeout: spec.statement_timeout,
            max_rows: spec.max_rows,
            max_bytes: spec.max_bytes,
        },
        reads: pool(reader, PoolMode::Reads),
        writes: (!read_only).then(|| pool(login, PoolMode::Writes)),
    })
}

impl fmt::Debug for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|database| &database.name)).finish()
    }
}

impl Grant for Sql {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}
