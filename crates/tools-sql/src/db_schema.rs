//! `db_schema`.

use crate::engine::{Table, TablesQuery};
use crate::engine_cache::EngineCache;
use crate::statement_args;
use octo_grants::Sql;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

/// Describes the tables of a schema: columns, types, keys, foreign keys, checks, indexes, comments and row estimates;
/// views with their query. For an unknown schema or table returns the existing ones. Prefer naming a table if the
/// schema is large.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name of the schema.
    #[serde(default = "default_schema")]
    schema: String,
    /// One table of it, also as schema.table; default: all.
    #[serde(default)]
    table: Option<String>,
    /// Maximum number of tables to describe.
    #[serde(default = "max_tables")]
    max_tables: usize,
    /// A name of db_connections.
    #[serde(default = "statement_args::default_connection")]
    connection_name: String,
}

fn default_schema() -> String {
    "public".to_owned()
}

fn max_tables() -> usize {
    200
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The schema.
    schema: String,
    /// Its tables and views, by name.
    tables: Vec<Table>,
    /// Number of tables and views in the schema.
    table_count: usize,
    /// True if some were omitted.
    truncated: bool,
}

pub struct Schema(pub Arc<EngineCache>);

impl Tool for Schema {
    const NAME: &'static str = "db_schema";
    const TITLE: &'static str = "Describe tables";
    const KEYWORDS: &'static str = "tables columns structure describe relations keys";
    const REQUESTS: &'static [&'static str] = &[
        "which columns does the customers table have",
        "what tables exist in the sales schema",
        "find the foreign keys between orders and clients",
        "before writing sql, learn the column names and types",
        "is there an index on the email column",
        "see the definition of a view",
        "roughly how many rows are in each table",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Sql;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("All tables of the usual schema", json!({})),
            Example::new("One table of another schema", json!({"schema": "sales", "table": "orders"})),
        ]
    }

    async fn run(&self, input: Input, sql: Sql, cx: &CallContext) -> Result<Output, ToolError> {
        let database = sql.named(&input.connection_name)?;
        let (schema, table) = split_qualified_name(input.schema, input.table)?;
        let ask = TablesQuery { schema: schema.clone(), table, max_tables: input.max_tables.clamp(1, 1000) };
        let found = self.0.get_or_create(&database).tables(ask, cx).await?;
        Ok(Output {
            schema,
            truncated: found.tables.len() < found.total,
            tables: found.tables,
            table_count: found.total,
        })
    }
}

/// Splits a name that may have a schema.
fn split_qualified_name(
    schema: String,
    table: Option<String>,
) -> Result<(String, Option<String>), ToolError> {
    let Some((of, name)) = table.as_deref().and_then(|table| table.split_once('.')) else {
        return Ok((schema, table));
    };
    let bare = |name: &str| name.trim_matches('"').to_owned();
    let (of, name) = (bare(of), bare(name));
    if schema != of && schema != default_schema() {
        return Err(ToolError::invalid(format!("schema is `{schema}`, but table has the schema `{of}`."))
            .hint("Name the schema once."));
    }
    Ok((of, Some(name)))
}
