//! `db_connections`.

use octo_grants::Sql;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists the database connections that the operator has configured, and whether each is read-only; credentials are
/// never shown. Opens none. Prefer db_schema to see what is inside of one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The connections, in the operator's order.
    connections: Vec<Connection>,
}

/// One connection.
#[derive(Serialize, JsonSchema)]
struct Connection {
    /// Value for connection_name.
    name: String,
    /// Database system.
    engine: String,
    /// Name of the database on the server.
    database: String,
    /// Host and port.
    host: String,
    /// Whether a session is open now; the first call opens one.
    connected: bool,
    /// Whether db_execute is refused.
    read_only: bool,
}

pub struct Connections;

impl Tool for Connections {
    const NAME: &'static str = "db_connections";
    const TITLE: &'static str = "List databases";
    const KEYWORDS: &'static str = "available databases list configured";
    const REQUESTS: &'static [&'static str] = &[
        "which databases can i reach",
        "is the production database writable or only for reading",
        "list the configured postgres hosts",
        "what name do i use for the warehouse database",
        "find out which data sources the operator has set up",
        "are we hooked up to any database at all",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Sql;

    fn examples() -> Vec<Example> {
        vec![Example::new("Which databases there are", json!({}))]
    }

    async fn run(&self, _: Input, sql: Sql, _cx: &CallContext) -> Result<Output, ToolError> {
        let connections = sql.all().iter().map(|database| Connection {
            name: database.name.clone(),
            engine: database.dialect.as_str().to_owned(),
            database: database.database.clone(),
            host: database.host.clone(),
            connected: database.reads.open_count()
                + database.writes.as_ref().map_or(0, |pool| pool.open_count())
                > 0,
            read_only: database.read_only,
        });
        Ok(Output { connections: connections.collect() })
    }
}
