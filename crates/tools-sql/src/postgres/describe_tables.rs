//! Catalogue queries: tables with all that a query's author needs to know.

use super::message_batch::MessageBatch;
use super::query_response::ReadLimits;
use super::{Postgres, json_values, server_error};
use crate::engine::{Tables, TablesQuery};
use octo_grants::sql::Lease;
use octo_toolkit::{CallContext, ToolError};
use std::time::Duration;

/// Timeout for a session of the pool.
const POOL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum names in a hint.
const MAX_HINT_NAMES: usize = 40;

/// Column names for attribute numbers, in the order of the numbers.
macro_rules! column_names {
    ($relation:literal, $numbers:literal) => {
        concat!(
            "(SELECT COALESCE(json_agg(a.attname ORDER BY k.at), '[]') FROM unnest(",
            $numbers,
            ") WITH ORDINALITY k(num, at) JOIN pg_attribute a ON a.attrelid = ",
            $relation,
            " AND a.attnum = k.num)"
        )
    };
}

/// `$1` is the schema, `$2` a table or NULL, `$3` the limit. One row with one json value.
const TABLES_SQL: &str = concat!(
    "WITH wanted AS (SELECT c.*, count(*) OVER () AS total FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace ",
    "WHERE n.nspname = $1::text AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition ",
    "AND ($2::text IS NULL OR c.relname = $2::text) ORDER BY c.relname LIMIT $3::int8) ",
    "SELECT json_build_object('total', COALESCE(max(c.total), 0), 'tables', COALESCE(json_agg(json_build_object(",
    "'name', c.relname, 'kind', CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' ",
    "WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END, 'comment', obj_description(c.oid, 'pg_class'), ",
    "'row_count_estimate', c.reltuples::int8, ",
    "'columns', (SELECT COALESCE(json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), ",
    "'nullable', NOT a.attnotnull, 'default', pg_get_expr(d.adbin, d.adrelid), 'primary_key', EXISTS (SELECT 1 FROM pg_index i ",
    "WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey)), 'generated', CASE WHEN a.attidentity = 'a' ",
    "THEN 'always' WHEN a.attidentity = 'd' THEN 'by default' WHEN a.attgenerated <> '' THEN 'stored' END, ",
    "'values', (SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = a.atttypid), ",
    "'comment', col_description(c.oid, a.attnum)) ORDER BY a.attnum), '[]') FROM pg_attribute a LEFT JOIN pg_attrdef d ",
    "ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), ",
    "'primary_key', COALESCE((SELECT ",
    column_names!("i.indrelid", "i.indkey::int2[]"),
    " FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary), '[]'), ",
    "'foreign_keys', (SELECT COALESCE(json_agg(json_build_object('name', f.conname, 'columns', ",
    column_names!("f.conrelid", "f.conkey"),
    ", 'references_schema', rn.nspname, 'references_table', rc.relname, 'references_columns', ",
    column_names!("f.confrelid", "f.confkey"),
    ", 'on_delete', CASE f.confdeltype WHEN 'c' THEN 'cascade' WHEN 'n' THEN 'set null' WHEN 'd' THEN 'set default' ",
    "WHEN 'r' THEN 'restrict' ELSE 'no action' END) ORDER BY f.conname), '[]') FROM pg_constraint f JOIN pg_class rc ",
    "ON rc.oid = f.confrelid JOIN pg_namespace rn ON rn.oid = rc.relnamespace WHERE f.conrelid = c.oid AND f.contype = 'f'), ",
    "'checks', (SELECT COALESCE(json_agg(pg_get_constraintdef(k.oid, true) ORDER BY k.conname), '[]') FROM pg_constraint k ",
    "WHERE k.conrelid = c.oid AND k.contype = 'c'), 'definition', CASE WHEN c.relkind IN ('v', 'm') ",
    "THEN left(pg_get_viewdef(c.oid, true), 4000) END, ",
    "'indexes', (SELECT COALESCE(json_agg(json_build_object('name', ic.relname, 'columns', (SELECT json_agg(",
    "pg_get_indexdef(i.indexrelid, k, true) ORDER BY k) FROM generate_series(1, i.indnkeyatts) k), 'unique', i.indisunique, ",
    "'definition', pg_get_indexdef(i.indexrelid)) ORDER BY ic.relname), '[]') FROM pg_index i JOIN pg_class ic ",
    "ON ic.oid = i.indexrelid WHERE i.indrelid = c.oid)) ORDER BY c.relname), '[]')) FROM wanted c"
);

/// Queries for the hint if nothing was found.
const SCHEMAS_SQL: &str = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_(toast|temp)' AND $1::text IS NOT NULL ORDER BY 1";
const TABLE_NAMES_SQL: &str = "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1::text \
     AND c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY 1";

pub async fn describe(engine: &Postgres, ask: TablesQuery, cx: &CallContext) -> Result<Tables, ToolError> {
    let mut lease = engine.session(&engine.database.reads, POOL_TIMEOUT, cx).await?;
    let most = i64::try_from(ask.max_tables).unwrap_or(i64::MAX).to_string();
    let values = [Some(ask.schema.clone()), ask.table.clone(), Some(most)];
    let found = texts(engine, &mut lease, TABLES_SQL, &values, cx).await?;
    let found = found.first().map_or("", String::as_str);
    let found: Tables = serde_json::from_str(found).map_err(ToolError::internal)?;
    if found.tables.is_empty() {
        missing(engine, &mut lease, &ask, cx).await?;
    }
    lease.release();
    Ok(found)
}

/// An empty schema is a valid result; a missing schema or table is an error.
async fn missing(
    engine: &Postgres,
    lease: &mut Lease,
    ask: &TablesQuery,
    cx: &CallContext,
) -> Result<(), ToolError> {
    let schema = [Some(ask.schema.clone())];
    let schemas = texts(engine, lease, SCHEMAS_SQL, &schema, cx).await?;
    if !schemas.contains(&ask.schema) {
        return Err(ToolError::not_found(format!("Schema not found: `{}`.", ask.schema))
            .hint(format!("Schemas: {}.", join_names(&schemas))));
    }
    let Some(table) = &ask.table else { return Ok(()) };
    let tables = texts(engine, lease, TABLE_NAMES_SQL, &schema, cx).await?;
    let hint = if tables.is_empty() {
        format!("The schema is empty. Schemas: {}.", join_names(&schemas))
    } else {
        format!("Tables: {}.", join_names(&tables))
    };
    Err(ToolError::not_found(format!("Table `{table}` not found in the schema `{}`.", ask.schema)).hint(hint))
}

fn join_names(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(MAX_HINT_NAMES).map(String::as_str).collect();
    let rest = names.len().saturating_sub(MAX_HINT_NAMES);
    if rest == 0 { shown.join(", ") } else { format!("{} and {rest} more", shown.join(", ")) }
}

/// Runs a query of the hub: the first column of all rows.
async fn texts(
    engine: &Postgres,
    lease: &mut Lease,
    sql: &str,
    values: &[Option<String>],
    cx: &CallContext,
) -> Result<Vec<String>, ToolError> {
    let mut script = MessageBatch::default();
    script.simple_query("SET search_path = pg_catalog")?;
    script.parse(sql)?.bind(values)?.describe()?.execute()?.sync();
    let heard = script.send(lease, &ReadLimits::for_catalog(), cx).await?;
    match &heard.error {
        Some(said) => Err(server_error::to_tool_error(&engine.database.name, said, 0)),
        None => Ok(heard.rows.iter().map(json_values::first_text).collect()),
    }
}
