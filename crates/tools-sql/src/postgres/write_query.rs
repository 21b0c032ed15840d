//! Writes: one statement over the extended protocol, in its own transaction.

use super::message_batch::MessageBatch;
use super::query_response::{QueryResponse, ReadLimits, timeout_error};
use super::{Postgres, server_error};
use crate::engine::{ChangeResult, Statement, TransactionEnd};
use octo_grants::sql::TransactionState;
use octo_toolkit::{CallContext, Kind, ToolError};

pub async fn execute(
    engine: &Postgres,
    statement: Statement,
    fate: TransactionEnd,
    cx: &CallContext,
) -> Result<ChangeResult, ToolError> {
    let Some(writes) = &engine.database.writes else {
        return Err(ToolError::denied(format!("The database `{}` is read-only.", engine.database.name))
            .hint("Use db_query to read, or another connection of db_connections."));
    };
    let mut lease = engine.session(writes, statement.timeout, cx).await?;
    let values = engine.values(&mut lease, &statement.params, &statement.sql, cx).await?;
    let timeout = statement.timeout.as_millis().max(1);
    let mut script = MessageBatch::default();
    match fate {
        TransactionEnd::Commit => script.simple_query(&format!("SET statement_timeout = {timeout}"))?,
        TransactionEnd::Rollback => {
            script.simple_query(&format!("BEGIN; SET LOCAL statement_timeout = {timeout}"))?
        }
    };
    script.parse(&statement.sql)?.bind(&values)?.describe()?.execute()?.sync();
    if fate == TransactionEnd::Rollback {
        script.simple_query("ROLLBACK")?;
    }
    let bounds = ReadLimits {
        max_rows: statement.max_rows,
        max_bytes: engine.database.limits.max_bytes,
        timeout: statement.timeout,
    };
    let heard =
        script.send(&mut lease, &bounds, cx).await.map_err(|error| with_unknown_outcome(error, fate))?;
    if heard.truncated {
        return Err(ToolError::new(Kind::TooLarge, "The statement returned too much data and was stopped.")
            .hint("Nothing was changed unless it had already completed; return fewer columns."));
    }
    if let Some(said) = &heard.error {
        lease.release();
        let stopped = said.code == "57014";
        return Err(if stopped {
            timeout_error(statement.timeout)
        } else {
            server_error::to_tool_error(&engine.database.name, said, 0)
        });
    }
    let standing = heard.transaction_states.get(1).copied().unwrap_or(TransactionState::Failed);
    let expected =
        if fate == TransactionEnd::Commit { TransactionState::Idle } else { TransactionState::InTransaction };
    if standing != expected {
        lease.release();
        return Err(ToolError::invalid("Transactions cannot be started or ended here; nothing was committed.")
            .hint("Each statement has its own transaction. Combine several changes in one statement WITH …, or a DO block."));
    }
    let (affected, command) = count(&heard, fate);
    let notices = heard.notices.clone();
    let rows = if heard.columns.is_empty() {
        None
    } else {
        Some(engine.rows(&mut lease, heard, statement.max_rows, cx).await?)
    };
    lease.release();
    Ok(ChangeResult { affected, command, rows, notices })
}

/// The statement may have been committed although its response was lost.
fn with_unknown_outcome(error: ToolError, fate: TransactionEnd) -> ToolError {
    if error.kind != Kind::Unavailable || fate == TransactionEnd::Rollback {
        return error;
    }
    let message = format!("{} It is unknown whether the statement took effect.", error.message);
    ToolError { message: message.into(), ..error }
        .hint("Check with db_query before trying again.")
        .with_unknown_outcome()
}

/// `INSERT 0 5`, `UPDATE 3`, `CREATE TABLE`.
fn count(heard: &QueryResponse, fate: TransactionEnd) -> (u64, String) {
    // The first tags are those of the hub's SET or BEGIN (two of them), the last that of its ROLLBACK.
    let own = if fate == TransactionEnd::Commit { 1 } else { 2 };
    let command = heard.command_tags.get(own).cloned().unwrap_or_default();
    let number = command.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let changes =
        ["INSERT", "UPDATE", "DELETE", "MERGE", "COPY"].iter().any(|verb| command.starts_with(verb));
    // The tag of CREATE TABLE AS is SELECT, without columns.
    let made = command.starts_with("SELECT") && heard.columns.is_empty();
    (if changes || made { number } else { 0 }, command)
}
