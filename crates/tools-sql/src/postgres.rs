//! PostgreSQL. Values are transferred as text, the one format of all types, and converted to JSON here.

mod bind_params;
mod describe_tables;
mod json_values;
mod literal;
mod message_batch;
mod query_response;
mod read_query;
mod server_error;
mod sql_types;
mod write_query;

use crate::engine::{
    ChangeResult, ExplainMode, PlanFormat, Rows, SqlEngine, Statement, Tables, TablesQuery, TransactionEnd,
};
use octo_grants::sql::{Database, Lease, Pool};
use octo_toolkit::{BoxFuture, CallContext, Json, ToolError};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// Maximum bytes of a reply besides columns, types, rows and notices.
const REPLY_OVERHEAD_BYTES: usize = 200;

pub struct Postgres {
    database: Arc<Database>,
    types: sql_types::TypeCache,
}

impl Postgres {
    pub fn new(database: Arc<Database>) -> Self {
        Self { database, types: sql_types::TypeCache::default() }
    }

    /// Acquires a session, unless the call is cancelled first.
    async fn session(&self, pool: &Pool, patience: Duration, cx: &CallContext) -> Result<Lease, ToolError> {
        cx.run(pool.acquire(patience)).await?
    }

    /// Values of `$1, $2 …` as text. Arrays and objects need the parameter types, which costs a round trip; the
    /// statement is parsed then, but not run.
    async fn values(
        &self,
        lease: &mut Lease,
        given: &[Box<RawValue>],
        sql: &str,
        cx: &CallContext,
    ) -> Result<Vec<Option<String>>, ToolError> {
        if given.iter().all(|value| bind_params::is_scalar(value)) {
            return given.iter().map(|value| bind_params::scalar(value)).collect();
        }
        let mut script = message_batch::MessageBatch::default();
        script.parse(sql)?.describe_statement()?.sync();
        let heard = script.send(lease, &query_response::ReadLimits::for_catalog(), cx).await?;
        if let Some(said) = &heard.error {
            return Err(server_error::to_tool_error(&self.database.name, said, 0));
        }
        let types = self.types.resolve(lease, &heard.parameters, cx).await?;
        let texts = given
            .iter()
            .enumerate()
            .map(|(at, value)| bind_params::encode_param(value, types.get(at).map(|t| &**t)));
        texts.collect()
    }

    /// Rows as JSON, after all responses were read.
    async fn rows(
        &self,
        lease: &mut Lease,
        heard: query_response::QueryResponse,
        max_rows: usize,
        cx: &CallContext,
    ) -> Result<Rows, ToolError> {
        let oids: Vec<u32> = heard.columns.iter().map(|column| column.oid).collect();
        let types = self.types.resolve(lease, &oids, cx).await?;
        let columns: Vec<String> = heard.columns.into_iter().map(|column| column.name).collect();
        let names: Vec<&str> = types.iter().map(|kind| kind.name.as_str()).collect();
        let room = cx
            .reply
            .remaining_after(REPLY_OVERHEAD_BYTES)
            .saturating_sub(Json::of(&(&columns, &names, &heard.notices)).bytes().len());
        let count = heard.rows.len().min(max_rows);
        let (rows, count) =
            json_values::write_rows(heard.rows.get(..count).unwrap_or_default(), &types, room)?;
        let truncated = heard.truncated || heard.row_count > count;
        Ok(Rows {
            columns,
            types: types.iter().map(|kind| kind.name.clone()).collect(),
            rows,
            count,
            truncated,
            notices: heard.notices,
        })
    }
}

impl SqlEngine for Postgres {
    fn query<'a>(
        &'a self,
        statement: Statement,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Rows, ToolError>> {
        Box::pin(read_query::query(self, statement, cx))
    }

    fn execute<'a>(
        &'a self,
        statement: Statement,
        fate: TransactionEnd,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ChangeResult, ToolError>> {
        Box::pin(write_query::execute(self, statement, fate, cx))
    }

    fn explain<'a>(
        &'a self,
        statement: Statement,
        explained: ExplainMode,
        format: PlanFormat,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(read_query::explain(self, statement, explained, format, cx))
    }

    fn tables<'a>(
        &'a self,
        ask: TablesQuery,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Tables, ToolError>> {
        Box::pin(describe_tables::describe(self, ask, cx))
    }
}
