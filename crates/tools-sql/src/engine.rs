//! What a database must be able to do. MySQL and SQLite join here; no tool changes.

use octo_toolkit::{BoxFuture, CallContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// One statement and its bounds.
pub struct Statement {
    pub sql: String,
    pub params: Vec<Box<RawValue>>,
    pub timeout: Duration,
    /// Rows to give; one more is fetched, to know whether there are more.
    pub max_rows: usize,
}

/// What a statement gave.
pub struct Rows {
    pub columns: Vec<String>,
    pub types: Vec<String>,
    /// An array of arrays, in the order of the columns.
    pub rows: Box<RawValue>,
    pub count: usize,
    pub truncated: bool,
    pub notices: Vec<String>,
}

/// What a change did.
pub struct ChangeResult {
    pub affected: u64,
    pub command: String,
    /// Of `RETURNING`.
    pub rows: Option<Rows>,
    pub notices: Vec<String>,
}

/// What becomes of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionEnd {
    Commit,
    Rollback,
}

/// Whether a statement is run to be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainMode {
    PlanOnly,
    Analyze,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PlanFormat {
    #[default]
    Text,
    Json,
    Yaml,
    Xml,
}

/// One connection. `query` and `explain` change nothing, because the database will not let them.
pub trait SqlEngine: Send + Sync {
    fn query<'a>(
        &'a self,
        statement: Statement,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Rows, ToolError>>;

    fn execute<'a>(
        &'a self,
        statement: Statement,
        fate: TransactionEnd,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ChangeResult, ToolError>>;

    fn explain<'a>(
        &'a self,
        statement: Statement,
        explained: ExplainMode,
        format: PlanFormat,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<String, ToolError>>;

    fn tables<'a>(
        &'a self,
        ask: TablesQuery,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Tables, ToolError>>;
}

/// Which tables to describe.
pub struct TablesQuery {
    pub schema: String,
    pub table: Option<String>,
    pub max_tables: usize,
}

/// The tables of one schema.
#[derive(Debug, Deserialize)]
pub struct Tables {
    pub tables: Vec<Table>,
    /// How many there are.
    pub total: usize,
}

/// One table, view or foreign table.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// Its name, without the schema.
    pub name: String,
    /// table, partitioned table, view, materialized view or foreign table.
    pub kind: String,
    /// What its owner wrote about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Columns in their order.
    pub columns: Vec<Column>,
    /// Names of the primary key's columns.
    pub primary_key: Vec<String>,
    /// Columns that point to other tables.
    pub foreign_keys: Vec<ForeignKey>,
    /// Indexes, that of the primary key included.
    pub indexes: Vec<Index>,
    /// What its rows must fulfil, as SQL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// The query of a view, shortened to 4,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Rows by the planner's statistics; -1 when the table was never analyzed.
    pub row_count_estimate: i64,
}

/// One column.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type as SQL writes it, such as numeric(10,2).
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether NULL may stand there.
    pub nullable: bool,
    /// The expression of its default value, when it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Whether it belongs to the primary key.
    pub primary_key: bool,
    /// always or by default for an identity column, stored for a generated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<String>,
    /// The labels of an enum type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    /// What its owner wrote about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// Columns that point to another table.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ForeignKey {
    /// Name of the constraint.
    pub name: String,
    /// Columns here.
    pub columns: Vec<String>,
    /// Schema of the other table.
    pub references_schema: String,
    /// The other table.
    pub references_table: String,
    /// Columns there, in the same order.
    pub references_columns: Vec<String>,
    /// What happens here when a row there is deleted.
    pub on_delete: String,
}

/// One index.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Columns or expressions, in order.
    pub columns: Vec<String>,
    /// Whether it allows no value twice.
    pub unique: bool,
    /// The whole definition: method, order, condition.
    pub definition: String,
}
