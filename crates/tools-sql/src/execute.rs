//! `db_execute`.

use crate::engine::TransactionEnd;
use crate::engine_cache::EngineCache;
use crate::statement_args::{self, AnyJson};
use octo_grants::Sql;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Instant;

/// Maximum rows of RETURNING.
const MAX_RETURNING_ROWS: usize = 100;

/// Runs one changing statement (INSERT, UPDATE, DELETE, MERGE, DDL) in its own transaction and returns the affected
/// rows, or rolls it back with dry_run. Refused on read-only connections. Prefer db_query for reading.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// One statement, with $1, $2 … for parameters.
    sql: String,
    /// Values for $1, $2 …: JSON scalars, arrays for SQL arrays, objects for json.
    #[serde(default)]
    #[schemars(with = "Option<Vec<AnyJson>>")]
    params: Option<Vec<Box<RawValue>>>,
    /// Timeout in seconds; then the statement is rolled back.
    #[serde(default = "statement_args::default_timeout_s")]
    timeout_s: u64,
    /// Run it, count, and roll it back; sequences still advance.
    #[serde(default)]
    dry_run: bool,
    /// A name of db_connections.
    #[serde(default = "statement_args::default_connection")]
    connection_name: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Rows inserted, changed or deleted.
    affected_rows: u64,
    /// Command tag of the server, such as UPDATE 3.
    command: String,
    /// True if everything was rolled back.
    dry_run: bool,
    /// Column names of RETURNING.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    columns: Option<Vec<String>>,
    /// The first hundred rows of RETURNING.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Vec<AnyJson>>")]
    rows: Option<Box<RawValue>>,
    /// Notices of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
    /// Duration in milliseconds.
    duration_ms: f64,
}

pub struct Execute(pub Arc<EngineCache>);

impl Tool for Execute {
    const NAME: &'static str = "db_execute";
    const TITLE: &'static str = "Change a database";
    const KEYWORDS: &'static str = "SQL insert update delete change rows create table migrate";
    const REQUESTS: &'static [&'static str] = &[
        "change the price of product 7 in the table",
        "insert a new customer row and return its key",
        "remove all expired sessions from the table",
        "create an index or add a column to the orders table",
        "how many rows would this update touch, roll it back afterwards",
        "set paid to true for invoice 4711 in the database",
        "drop the old staging table",
    ];
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Sql;

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "See what an update would do",
                json!({"sql": "UPDATE orders SET state = 'closed' WHERE paid AND state = 'open'", "dry_run": true}),
            ),
            Example::new(
                "Insert a row and get its key",
                json!({"sql": "INSERT INTO customers (name, tags) VALUES ($1, $2) RETURNING id", "params": ["Ann", ["new"]]}),
            ),
        ]
    }

    async fn run(&self, input: Input, sql: Sql, cx: &CallContext) -> Result<Output, ToolError> {
        let database = sql.named(&input.connection_name)?;
        let statement = statement_args::statement(
            input.sql,
            input.params,
            MAX_RETURNING_ROWS,
            input.timeout_s,
            &database.limits,
            cx,
        )?;
        let fate = if input.dry_run { TransactionEnd::Rollback } else { TransactionEnd::Commit };
        let began = Instant::now();
        let change = self.0.get_or_create(&database).execute(statement, fate, cx).await?;
        let (columns, rows) = change.rows.map(|rows| (rows.columns, rows.rows)).unzip();
        Ok(Output {
            affected_rows: change.affected,
            command: change.command,
            dry_run: input.dry_run,
            columns,
            rows,
            notices: change.notices,
            duration_ms: statement_args::elapsed_ms(began),
        })
    }
}
