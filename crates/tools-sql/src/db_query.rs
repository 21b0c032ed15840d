//! `db_query`.

use crate::engine_cache::EngineCache;
use crate::statement_args::{self, AnyJson};
use octo_grants::Sql;
use octo_toolkit::{CallContext, Effect, Example, ModelText, Tool, ToolError, counted, plain_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Instant;

/// Runs one SELECT, VALUES, TABLE or WITH query and returns its rows; the database itself refuses every change. Errors
/// carry SQLSTATE and position. Prefer db_schema to learn the tables first, db_execute to change data.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// One query, with $1, $2 … for parameters.
    sql: String,
    /// Values for $1, $2 …: JSON scalars, arrays for SQL arrays, objects for json.
    #[serde(default)]
    #[schemars(with = "Option<Vec<AnyJson>>")]
    params: Option<Vec<Box<RawValue>>>,
    /// Maximum rows to return; truncated tells whether there are more.
    #[serde(default = "statement_args::default_max_rows")]
    max_rows: usize,
    /// Timeout in seconds.
    #[serde(default = "statement_args::default_timeout_s")]
    timeout_s: u64,
    /// A name of db_connections.
    #[serde(default = "statement_args::default_connection")]
    connection_name: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Names of the columns.
    columns: Vec<String>,
    /// SQL types of the columns, in the same order.
    types: Vec<String>,
    /// One array of values per row, in the order of the columns. Numbers that JSON readers would round are strings.
    #[schemars(with = "Vec<Vec<AnyJson>>")]
    rows: Box<RawValue>,
    /// Number of returned rows.
    row_count: usize,
    /// True if there are more rows, or if the reply would be too large.
    truncated: bool,
    /// Notices of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
    /// Duration in milliseconds.
    duration_ms: f64,
}

pub struct Query(pub Arc<EngineCache>);

impl Tool for Query {
    const NAME: &'static str = "db_query";
    const TITLE: &'static str = "Query a database";
    const KEYWORDS: &'static str = "SQL select read rows table report count postgres data";
    const REQUESTS: &'static [&'static str] = &[
        "how many orders came in last month",
        "show the ten biggest customers from the sales table",
        "look up the user with id 42 in postgres",
        "select rows where the status is open",
        "get the average price per category with sql",
        "count records per day without changing anything",
        "join invoices with clients and give me the rows",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Sql;

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "The ten largest orders of a customer",
                json!({"sql": "SELECT id, total FROM orders WHERE customer = $1 ORDER BY total DESC LIMIT 10", "params": [42]}),
            ),
            Example::new(
                "How many rows there are in each month",
                json!({"sql": "SELECT date_trunc('month', created) AS month, count(*) FROM orders GROUP BY 1 ORDER BY 1", "max_rows": 24}),
            ),
        ]
    }

    fn text(output: &Output) -> Option<String> {
        let table = plain_text::table(&output.columns, &output.rows)?;
        let cut = if output.truncated { " (truncated)" } else { "" };
        ModelText::new()
            .line(format_args!(
                "{}, {} ms{cut}",
                counted(output.row_count, "row", "rows"),
                output.duration_ms
            ))
            .lines(output.notices.iter().map(|notice| format!("notice: {notice}")))
            .rest(&table)
            .finish()
    }

    async fn run(&self, input: Input, sql: Sql, cx: &CallContext) -> Result<Output, ToolError> {
        let database = sql.named(&input.connection_name)?;
        let statement = statement_args::statement(
            input.sql,
            input.params,
            input.max_rows,
            input.timeout_s,
            &database.limits,
            cx,
        )?;
        let began = Instant::now();
        let rows = self.0.get_or_create(&database).query(statement, cx).await?;
        Ok(Output {
            columns: rows.columns,
            types: rows.types,
            rows: rows.rows,
            row_count: rows.count,
            truncated: rows.truncated,
            notices: rows.notices,
            duration_ms: statement_args::elapsed_ms(began),
        })
    }
}
