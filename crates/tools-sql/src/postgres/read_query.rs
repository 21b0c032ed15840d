//! Reads. The server prevents changes: by its role, by a read-only transaction that is always rolled back, and by its
//! grammar, because the caller's text is placed where only a query is allowed.

use super::message_batch::MessageBatch;
use super::query_response::{QueryResponse, ReadLimits, timeout_error};
use super::{Postgres, server_error};
use crate::engine::{ExplainMode, PlanFormat, Rows, Statement};
use octo_grants::sql::{Lease, TransactionState};
use octo_toolkit::{CallContext, Kind, ToolError};
use std::time::Duration;

/// A cursor accepts one SELECT, VALUES or TABLE, and none that changes data; the rest of the text is the caller's.
const DECLARE_CURSOR: &str = "DECLARE octo_rows NO SCROLL CURSOR WITHOUT HOLD FOR ";
/// How long a reader waits for a lock; only DDL blocks it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

pub async fn query(engine: &Postgres, statement: Statement, cx: &CallContext) -> Result<Rows, ToolError> {
    let sql = format!("{DECLARE_CURSOR}{}", statement.sql);
    let fetch = format!("FETCH FORWARD {} FROM octo_rows", statement.max_rows.saturating_add(1));
    let (mut lease, heard) = read(engine, &statement, &sql, Some(&fetch), cx).await?;
    if let Some(said) = &heard.error {
        let mut error =
            server_error::to_tool_error(&engine.database.name, said, DECLARE_CURSOR.chars().count());
        if said.code == "57014" {
            error = timeout_error(statement.timeout);
        } else if matches!(said.code.as_str(), "42601" | "0A000") && error.kind == Kind::Invalid {
            error = error.hint(
                "db_query takes one SELECT, VALUES, TABLE or WITH … SELECT. Use db_execute for changes, db_explain for \
                 plans, and current_setting('name') instead of SHOW.",
            );
        }
        lease.release();
        return Err(error);
    }
    if !lease.is_done() {
        // The session was cancelled and is not idle yet; types are queried in another one.
        drop(lease);
        lease = engine.session(&engine.database.reads, statement.timeout, cx).await?;
    }
    let rows = engine.rows(&mut lease, heard, statement.max_rows, cx).await?;
    lease.release();
    Ok(rows)
}

pub async fn explain(
    engine: &Postgres,
    statement: Statement,
    explained: ExplainMode,
    format: PlanFormat,
    cx: &CallContext,
) -> Result<String, ToolError> {
    let format = match format {
        PlanFormat::Text => "TEXT",
        PlanFormat::Json => "JSON",
        PlanFormat::Yaml => "YAML",
        PlanFormat::Xml => "XML",
    };
    let options = match explained {
        ExplainMode::Analyze => "ANALYZE, BUFFERS, ",
        ExplainMode::PlanOnly => "",
    };
    let before = format!("EXPLAIN ({options}FORMAT {format}) ");
    let (lease, heard) = read(engine, &statement, &format!("{before}{}", statement.sql), None, cx).await?;
    lease.release();
    if let Some(said) = &heard.error {
        let stopped = said.code == "57014";
        return Err(if stopped {
            timeout_error(statement.timeout)
        } else {
            server_error::to_tool_error(&engine.database.name, said, before.chars().count())
        });
    }
    let lines: Vec<String> = heard.rows.iter().map(super::json_values::first_text).collect();
    Ok(lines.join("\n"))
}

/// Begins, runs and rolls back, in one round trip.
async fn read(
    engine: &Postgres,
    statement: &Statement,
    sql: &str,
    fetch: Option<&str>,
    cx: &CallContext,
) -> Result<(Lease, QueryResponse), ToolError> {
    let mut lease = engine.session(&engine.database.reads, statement.timeout, cx).await?;
    let values = engine.values(&mut lease, &statement.params, sql, cx).await?;
    let (timeout, lock) =
        (statement.timeout.as_millis().max(1), LOCK_TIMEOUT.min(statement.timeout).as_millis().max(1));
    let mut script = MessageBatch::default();
    script.simple_query(&format!(
        "BEGIN TRANSACTION READ ONLY; SET LOCAL statement_timeout = {timeout}; SET LOCAL lock_timeout = {lock}"
    ))?;
    script.parse(sql)?.bind(&values)?;
    match fetch {
        Some(fetch) => script.execute()?.parse(fetch)?.bind(&[])?.describe()?.execute()?,
        None => script.describe()?.execute()?,
    };
    script.sync().simple_query("ROLLBACK")?;
    let bounds = ReadLimits {
        max_rows: statement.max_rows.saturating_add(1),
        max_bytes: engine.database.limits.max_bytes,
        timeout: statement.timeout,
    };
    let heard = script.send(&mut lease, &bounds, cx).await?;
    // After the statement the transaction must still be the same one; the grammar allows nothing else. A session where
    // it is not is never reused.
    if !heard.truncated
        && !matches!(
            heard.transaction_states.get(1),
            Some(TransactionState::InTransaction | TransactionState::Failed)
        )
    {
        drop(lease);
        return Err(ToolError::denied("The statement left its read-only transaction.")
            .hint("Use db_execute for statements that control transactions."));
    }
    Ok((lease, heard))
}
