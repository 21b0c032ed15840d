//! Writes groups of records to the chain of this hub, over a session of its own. A group is written once, even if the
//! connection is lost and it is not known whether the group was committed.

use super::audit_partitions::{self, Month};
use super::group_rows::{GroupRows, append_sql, months};
use crate::connector::{Connector, Session};
use crate::transaction::{Prelude, Scope};
use crate::value::{Value, typed};
use crate::{PostgresError, migrations};
use octo_ports::audit_format::{Batch, ChainHasher};
use octo_ports::{Anchor, Hash};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

/// For a group. A record waits at most for the group before its own, too.
const GROUP_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two attempts to write a group.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct ChainWriter {
    connector: Connector,
    schema: Arc<str>,
    append_sql: String,
    chain: String,
    /// Identifies this writer among those of the same chain.
    id: [u8; 8],
    session: Option<Session>,
    /// The end of the chain after the last write.
    head: Option<Anchor>,
    /// Whose partitions exist.
    months: BTreeSet<Month>,
    hasher: ChainHasher,
    doubt: Doubt,
    /// The last group could not be written.
    is_down: bool,
    is_warned: bool,
}

/// What is not known about the first records of the next group, which were sent before.
#[derive(Default)]
struct Doubt {
    /// So many were committed.
    committed: usize,
    attempts: Vec<Attempt>,
}

/// A group that may have been committed.
struct Attempt {
    head: Anchor,
    /// Time of its last record.
    at: i64,
    /// So many of the first records of the next group are in it.
    records: usize,
}

impl ChainWriter {
    pub(crate) fn new(connector: Connector, schema: &str, chain: &str, id: [u8; 8]) -> Self {
        Self {
            connector,
            schema: schema.into(),
            append_sql: append_sql(schema),
            chain: chain.to_owned(),
            id,
            session: None,
            head: None,
            months: BTreeSet::new(),
            hasher: ChainHasher::default(),
            doubt: Doubt::default(),
            is_down: false,
            is_warned: false,
        }
    }

    /// Writes the whole batch. While the database is down, an error follows within the timeout for the first batch, and
    /// after one attempt for the next ones. Afterwards the ends of calls must be the first records of the next batch.
    pub(crate) async fn write(&mut self, batch: &Batch) -> Result<(), PostgresError> {
        let deadline = Instant::now() + GROUP_TIMEOUT;
        let mut delay = Duration::ZERO;
        loop {
            let attempt = timeout_at(deadline, self.try_write(batch)).await;
            let error = match attempt.unwrap_or(Err(PostgresError::Timeout)) {
                Err(error) if self.doubt.committed < batch.len() => error,
                _ => {
                    self.doubt = Doubt::default();
                    self.is_down = false;
                    return Ok(());
                }
            };
            let is_late = Instant::now() + RETRY_INTERVAL >= deadline;
            if is_late || self.is_down || !is_transient(&error) {
                self.is_down = true;
                let ends = batch.ends();
                for attempt in &mut self.doubt.attempts {
                    attempt.records = attempt.records.min(ends);
                }
                return Err(error);
            }
            // The first failure may be that of a session that was idle for long.
            sleep(delay).await;
            delay = RETRY_INTERVAL;
        }
    }

    /// The ends of calls will not be the first records of the next batch.
    pub(crate) fn forget(&mut self) {
        self.doubt = Doubt::default();
    }

    async fn try_write(&mut self, batch: &Batch) -> Result<(), PostgresError> {
        // Closed unless the attempt succeeds: its state would not be known.
        let session = match self.session.take() {
            Some(session) => session,
            None => self.connect().await?,
        };
        let is_written = match self.write_group(&session.client, batch).await {
            Err(error) if error.code() == Some(&SqlState::CHECK_VIOLATION) => {
                // A partition was dropped meanwhile.
                self.months.clear();
                self.write_group(&session.client, batch).await?
            }
            answer => answer?,
        };
        if !is_written {
            return Err(PostgresError::Refused("the end of the chain cannot be moved".to_owned()));
        }
        self.session = Some(session);
        Ok(())
    }

    async fn connect(&self) -> Result<Session, PostgresError> {
        let session = self.connector.open(|_| {}).await?;
        migrations::check(&session.client, &self.schema).await?;
        Ok(session)
    }

    async fn write_group(&mut self, client: &Client, batch: &Batch) -> Result<bool, Error> {
        self.create_partitions(client, batch).await?;
        if let Some(head) = self.head.filter(|_| self.doubt.attempts.is_empty()) {
            let records = batch.records().skip(self.doubt.committed);
            let rows = GroupRows::new(&mut self.hasher, head, records);
            if self.append(client, &rows, batch, false).await? {
                return Ok(true);
            }
        }
        self.write_locked(client, batch).await
    }

    /// Locks the end of the chain, so that no one else moves it, and every earlier attempt has ended or will fail.
    async fn write_locked(&mut self, client: &Client, batch: &Batch) -> Result<bool, Error> {
        let head = self.lock_head(client).await?;
        self.resolve_doubt(client).await?;
        let records = batch.records().skip(self.doubt.committed);
        let rows = GroupRows::new(&mut self.hasher, head, records);
        if rows.head == head {
            client.batch_execute("COMMIT").await?;
            self.head = Some(head);
            return Ok(true);
        }
        self.append(client, &rows, batch, true).await
    }

    async fn lock_head(&mut self, client: &Client) -> Result<Anchor, Error> {
        let add = "INSERT INTO audit_chains (chain) VALUES ($1) ON CONFLICT (chain) DO NOTHING";
        let lock = "SELECT seq, hash, writer FROM audit_chains WHERE chain = $1 FOR UPDATE";
        let (prelude, chain) = (self.prelude(), self.chain.as_str());
        let values: [&dyn Value; 1] = [&chain];
        let values = typed(&values);
        let (begin, add, rows) = tokio::join!(biased;
            prelude.send(client), client.execute_typed(add, &values), client.query_typed(lock, &values));
        let rows = begin.and(add).and(rows)?;
        let Some(row) = rows.first() else { return Ok(Anchor::default()) };
        let (seq, hash): (i64, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
        let head = Anchor { seq: seq.cast_unsigned(), hash: Hash::from_bytes(hash).unwrap_or_default() };
        let writer: Option<&[u8]> = row.try_get(2)?;
        if self.head.is_some_and(|known| known != head) && writer != Some(&self.id) && !self.is_warned {
            self.is_warned = true;
            tracing::warn!(
                chain = self.chain,
                "another process writes to the same chain of the audit log: each hub of a database needs its own name"
            );
        }
        Ok(head)
    }

    /// Finds out which earlier attempt was committed. Needs the lock; without it, others may still be committed, until the
    /// chain has another end.
    async fn resolve_doubt(&mut self, client: &Client) -> Result<(), Error> {
        let find = "SELECT FROM audit WHERE chain = $1 AND seq = $2 AND at = $3 AND hash = $4";
        let chain = self.chain.as_str();
        for attempt in &self.doubt.attempts {
            let (seq, hash) = (attempt.head.seq.cast_signed(), attempt.head.hash.0.as_slice());
            let values: [&dyn Value; 4] = [&chain, &seq, &attempt.at, &hash];
            if !client.query_typed(find, &typed(&values)).await?.is_empty() {
                self.doubt.committed = self.doubt.committed.max(attempt.records);
            }
        }
        Ok(())
    }

    /// Sends the rows, with the end of the transaction if there is one, and returns whether they were added.
    async fn append(
        &mut self,
        client: &Client,
        rows: &GroupRows<'_>,
        batch: &Batch,
        is_in_transaction: bool,
    ) -> Result<bool, Error> {
        let earlier = self.doubt.attempts.len();
        if !self.doubt.attempts.iter().any(|attempt| attempt.head == rows.head) {
            let attempt = Attempt { head: rows.head, at: rows.last_time(), records: batch.len() };
            self.doubt.attempts.push(attempt);
        }
        let append = rows.append(client, &self.append_sql, &self.chain, &self.id);
        let answer = if is_in_transaction {
            let (added, committed) = tokio::join!(biased; append, client.batch_execute("COMMIT"));
            added.and_then(|added| committed.map(|()| added))
        } else {
            append.await
        };
        if answer.as_ref().is_err_and(PostgresError::ends_session) {
            return answer;
        }
        self.doubt.attempts.truncate(earlier);
        if let Ok(true) = answer {
            self.head = Some(rows.head);
        }
        answer
    }

    async fn create_partitions(&mut self, client: &Client, batch: &Batch) -> Result<(), Error> {
        let needed = months(batch.records());
        if needed.is_subset(&self.months) {
            return Ok(());
        }
        let (prelude, months): (_, Vec<Month>) = (self.prelude(), needed.iter().copied().collect());
        let (begin, created, committed) = tokio::join!(biased;
            prelude.send(client), audit_partitions::create(client, &months), client.batch_execute("COMMIT"));
        begin.and(created).and(committed)?;
        self.months.extend(needed);
        Ok(())
    }

    fn prelude(&self) -> Prelude {
        Prelude::new(&self.schema, Scope::AllTenants)
    }
}

/// Whether another attempt may succeed.
fn is_transient(error: &PostgresError) -> bool {
    matches!(
        error,
        PostgresError::Unreachable(_)
            | PostgresError::ConnectTimeout
            | PostgresError::NoPrimary
            | PostgresError::Timeout
            | PostgresError::Disconnected(_)
    )
}
