//! PostgreSQL. Values travel as text, the one form that every type has, and become JSON here.

mod fault;
mod hear;
mod json;
mod literal;
mod params;
mod read;
mod script;
mod tables;
mod types;
mod write;

use crate::engine::{Change, Engine, Explained, Fate, PlanFormat, Rows, Statement, Tables, TablesAsk};
use octo_grants::sql::{Database, Lease, Pool};
use octo_toolkit::{BoxFuture, CallContext, Json, ToolError};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that the members of a reply take beside columns, types, rows and notices, at most.
const FACTS: usize = 200;

pub struct Postgres {
    database: Arc<Database>,
    types: types::Types,
}

impl Postgres {
    pub fn new(database: Arc<Database>) -> Self {
        Self { database, types: types::Types::default() }
    }

    /// A session, unless the call is cancelled before its turn.
    async fn session(&self, pool: &Pool, patience: Duration, cx: &CallContext) -> Result<Lease, ToolError> {
        cx.run(pool.acquire(patience)).await?
    }

    /// The values of `$1, $2 …` as text. Arrays and objects can only be written when the types are known, which costs a
    /// question; the statement is parsed already and nothing of it has run.
    async fn values(
        &self,
        lease: &mut Lease,
        given: &[Box<RawValue>],
        sql: &str,
        cx: &CallContext,
    ) -> Result<Vec<Option<String>>, ToolError> {
        if given.iter().all(|value| params::is_scalar(value)) {
            return given.iter().map(|value| params::scalar(value)).collect();
        }
        let mut script = script::Script::default();
        script.parse(sql)?.describe_statement()?.sync();
        let heard = script.play(lease, &hear::Bounds::of_ours(), cx).await?;
        if let Some(said) = &heard.fault {
            return Err(fault::of(&self.database.name, said, 0));
        }
        let types = self.types.of(lease, &heard.parameters, cx).await?;
        let texts =
            given.iter().enumerate().map(|(at, value)| params::text(value, types.get(at).map(|t| &**t)));
        texts.collect()
    }

    /// Rows as JSON, when all has been heard.
    async fn rows(
        &self,
        lease: &mut Lease,
        heard: hear::Heard,
        max_rows: usize,
        cx: &CallContext,
    ) -> Result<Rows, ToolError> {
        let oids: Vec<u32> = heard.columns.iter().map(|column| column.oid).collect();
        let types = self.types.of(lease, &oids, cx).await?;
        let columns: Vec<String> = heard.columns.into_iter().map(|column| column.name).collect();
        let names: Vec<&str> = types.iter().map(|kind| kind.name.as_str()).collect();
        let room = cx
            .reply
            .remaining_after(FACTS)
            .saturating_sub(Json::of(&(&columns, &names, &heard.notices)).bytes().len());
        let count = heard.rows.len().min(max_rows);
        let (rows, count) = json::rows(heard.rows.get(..count).unwrap_or_default(), &types, room)?;
        let truncated = heard.cut || heard.seen > count;
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

impl Engine for Postgres {
    fn query<'a>(
        &'a self,
        statement: Statement,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Rows, ToolError>> {
        Box::pin(read::query(self, statement, cx))
    }

    fn execute<'a>(
        &'a self,
        statement: Statement,
        fate: Fate,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Change, ToolError>> {
        Box::pin(write::execute(self, statement, fate, cx))
    }

    fn explain<'a>(
        &'a self,
        statement: Statement,
        explained: Explained,
        format: PlanFormat,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(read::explain(self, statement, explained, format, cx))
    }

    fn tables<'a>(&'a self, ask: TablesAsk, cx: &'a CallContext) -> BoxFuture<'a, Result<Tables, ToolError>> {
        Box::pin(tables::describe(self, ask, cx))
    }
}
