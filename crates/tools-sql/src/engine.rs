//! Interface of a database engine. MySQL and SQLite can be added here; no tool changes.

use octo_toolkit::{BoxFuture, CallContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// One statement and its limits.
pub struct Statement {
    pub sql: String,
    pub params: Vec<Box<RawValue>>,
    pub timeout: Duration,
    /// Maximum rows to return; one more is fetched, to know whether there are more.
    pub max_rows: usize,
}

/// Result of a query.
pub struct Rows {
    pub columns: Vec<String>,
    pub types: Vec<String>,
    /// An array of arrays, in the order of the columns.
    pub rows: Box<RawValue>,
    pub count: usize,
    pub truncated: bool,
    pub notices: Vec<String>,
}

/// Result of a change.
pub struct ChangeResult {
    pub affected: u64,
    pub command: String,
    /// Rows of `RETURNING`.
    pub rows: Option<Rows>,
    pub notices: Vec<String>,
}

/// How a change ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionEnd {
    Commit,
    Rollback,
}

/// Whether a statement is run for its plan.
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

/// One database. `query` and `explain` change nothing, because the database enforces it.
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

/// Tables of one schema.
#[derive(Debug, Deserialize)]
pub struct Tables {
    pub tables: Vec<Table>,
    /// Total number.
    pub total: usize,
}

/// One table, view or foreign table.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// Its name, without the schema.
    pub name: String,
    /// table, partitioned table, view, materialized view or foreign table.
    pub kind: String,
    /// Comment of its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Columns in order.
    pub columns: Vec<Column>,
    /// Columns of the primary key.
    pub primary_key: Vec<String>,
    /// Foreign keys to other tables.
    pub foreign_keys: Vec<ForeignKey>,
    /// Indexes, including that of the primary key.
    pub indexes: Vec<Index>,
    /// Check constraints, as SQL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// Query of a view, truncated to 4,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Estimated rows, from the planner's statistics; -1 if never analyzed.
    pub row_count_estimate: i64,
}

/// One column.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its SQL type, such as numeric(10,2).
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it can be NULL.
    pub nullable: bool,
    /// Expression of its default value, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Whether it is part of the primary key.
    pub primary_key: bool,
    /// always or by default for an identity column, stored for a generated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<String>,
    /// Labels of an enum type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    /// Comment of its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// Foreign key to another table.
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
    /// Action on deletion of the referenced row.
    pub on_delete: String,
}

/// One index.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Columns or expressions, in order.
    pub columns: Vec<String>,
    /// Whether values are unique.
    pub unique: bool,
    /// Full definition: method, order, condition.
    pub definition: String,
}
