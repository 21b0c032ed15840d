//! Sessions and their streams. The owner of a stream is replaced only where its lease has ended, in the statement that
//! replaces it.

use crate::database::Database;
use crate::interval::Interval;
use crate::lease_store::PostgresLeaseStore;
use crate::transaction::Scope;
use crate::value::Value;
use octo_model::BoxFuture;
use octo_ports::sessions::{
    AdoptedStream, MAX_PART_EVENTS, SessionChange, SessionKey, SessionRecord, StreamAppend, StreamEvent,
    StreamPart,
};
use octo_ports::{Port, SessionStore, StoreResult};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Row;

/// How often this process removes what is old.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);
/// What a client has set is removed after a week without a change.
const REMOVE_SESSIONS: &str =
    "DELETE FROM sessions WHERE changed < statement_timestamp() - interval '7 days'";
/// A finished stream is removed after five minutes, one that nobody writes any more after an hour, and one whose owner
/// has given up storing it after a day.
fn remove_streams() -> String {
    let is_held = PostgresLeaseStore::is_held("session_streams.owner");
    format!(
        "DELETE FROM session_streams
         WHERE changed < statement_timestamp() - interval '5 min'
            AND (is_finished
                OR changed < statement_timestamp() - interval '1 h' AND NOT {is_held}
                OR changed < statement_timestamp() - interval '1 day')"
    )
}

pub(crate) struct PostgresSessionStore {
    database: Arc<Database>,
    cleanup: Interval,
}

const ADD_SUBSCRIPTION: &str =
    "subscriptions = array_remove(sessions.subscriptions, $6) || excluded.subscriptions";

/// Whether a stream is continued neither by its end nor by an answer.
const IS_RUNNING: &str = "NOT is_finished AND (question IS NULL OR call IS NULL)";

fn id_text(session: &SessionKey) -> String {
    format!("{:032x}", session.id)
}

fn signed(number: u64) -> i64 {
    number.cast_signed()
}

fn unsigned(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column).cast_unsigned()
}

impl PostgresSessionStore {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self { database, cleanup: Interval::new(CLEANUP_INTERVAL) }
    }

    async fn write(&self, session: &SessionKey, sql: &str, values: &[&dyn Value]) -> StoreResult<Vec<Row>> {
        self.database.write(Port::Sessions, Scope::Tenant(&session.tenant), sql, values).await
    }

    async fn read_rows(
        &self,
        session: &SessionKey,
        sql: &str,
        values: &[&dyn Value],
    ) -> StoreResult<Vec<Row>> {
        self.database.read(Port::Sessions, Scope::Tenant(&session.tenant), sql, values).await
    }

    /// The stream that this statement has taken, if any.
    async fn take(
        &self,
        session: &SessionKey,
        sql: &str,
        values: &[&dyn Value],
    ) -> StoreResult<Option<AdoptedStream>> {
        let rows = self.write(session, sql, values).await?;
        Ok(rows.first().map(|row| AdoptedStream {
            number: unsigned(row, 0),
            request: row.get(1),
            next: unsigned(row, 2),
            call: row.get(3),
        }))
    }

    async fn append(&self, session: &SessionKey, append: StreamAppend) -> StoreResult<bool> {
        let put = "WITH stream AS (
                INSERT INTO session_streams
                    (tenant, session, number, owner, request, next, question, call, is_finished)
                VALUES ($1, $2, $3, $4, $5, $7, $12, $13, $14)
                ON CONFLICT (tenant, session, number) DO UPDATE SET
                    next = $7,
                    -- Not again after a lost answer of the database: the question may have been taken since.
                    question = CASE WHEN session_streams.next = $6 THEN coalesce($12, session_streams.question)
                        ELSE session_streams.question END,
                    call = CASE WHEN session_streams.next = $6 AND $12 IS NOT NULL THEN $13
                        ELSE session_streams.call END,
                    is_finished = $14,
                    changed = clock_timestamp()
                WHERE session_streams.owner = $4 AND session_streams.next IN ($6, $7)
                RETURNING number
            ), dropped AS (
                DELETE FROM session_events
                WHERE tenant = $1 AND session = $2 AND stream = $3 AND is_droppable AND sequence < $11
                    AND EXISTS (SELECT FROM stream)
            ), added AS (
                INSERT INTO session_events (tenant, session, stream, sequence, is_droppable, text)
                SELECT $1, $2, $3, event.* FROM unnest($8, $9, $10) event
                WHERE EXISTS (SELECT FROM stream)
                ON CONFLICT DO NOTHING
            )
            SELECT FROM stream";
        let sequences: Vec<i64> = append.events.iter().map(|event| signed(event.sequence)).collect();
        let droppable: Vec<bool> = append.events.iter().map(|event| event.is_droppable).collect();
        let texts: Vec<&[u8]> = append.events.iter().map(|event| event.text.as_slice()).collect();
        let question = append.question.as_ref().map(|question| signed(question.number));
        let call = append.question.as_ref().and_then(|question| question.call.as_deref());
        let values: [&dyn Value; 14] = [
            &session.tenant,
            &id_text(session),
            &signed(append.number),
            &append.owner,
            &append.request,
            &signed(append.first),
            &signed(append.next),
            &sequences,
            &droppable,
            &texts,
            &signed(append.dropped_before),
            &question,
            &call,
            &append.is_finished,
        ];
        let rows = self.write(session, put, &values).await?;
        if self.cleanup.is_due() {
            let database = Arc::clone(&self.database);
            tokio::spawn(async move {
                for sql in [REMOVE_SESSIONS, &remove_streams()] {
                    // The next cleanup removes what this one leaves.
                    let _ = database.write(Port::Sessions, Scope::AllTenants, sql, &[]).await;
                }
            });
        }
        Ok(!rows.is_empty())
    }

    async fn read(&self, session: &SessionKey, number: u64, from: u64) -> StoreResult<Option<StreamPart>> {
        let is_held = PostgresLeaseStore::is_held("stream.owner");
        let read = format!(
            "SELECT is_finished, {IS_RUNNING} AND NOT {is_held}, event.sequence, event.is_droppable, event.text
             FROM session_streams stream
             LEFT JOIN LATERAL (
                SELECT sequence, is_droppable, text FROM session_events
                WHERE tenant = $1 AND session = $2 AND session_events.stream = $3 AND sequence >= $4
                ORDER BY sequence LIMIT $5
             ) event ON true
             WHERE stream.tenant = $1 AND stream.session = $2 AND number = $3
             ORDER BY event.sequence"
        );
        let limit = MAX_PART_EVENTS as i64 + 1;
        let values: [&dyn Value; 5] =
            [&session.tenant, &id_text(session), &signed(number), &signed(from), &limit];
        let rows = self.read_rows(session, &read, &values).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let mut events: Vec<StreamEvent> = rows.iter().filter_map(stream_event).collect();
        let has_more = events.len() > MAX_PART_EVENTS;
        events.truncate(MAX_PART_EVENTS);
        Ok(Some(StreamPart { events, has_more, is_finished: first.get(0), is_orphaned: first.get(1) }))
    }
}

/// The event of a row; a stream may have none.
fn stream_event(row: &Row) -> Option<StreamEvent> {
    let sequence = row.get::<_, Option<i64>>(2)?.cast_unsigned();
    Some(StreamEvent { sequence, is_droppable: row.get(3), text: row.get(4) })
}

impl SessionStore for PostgresSessionStore {
    fn get<'a>(&'a self, session: &'a SessionKey) -> BoxFuture<'a, StoreResult<Option<SessionRecord>>> {
        Box::pin(async move {
            let find =
                "SELECT log_level, subscriptions, has_ended FROM sessions WHERE tenant = $1 AND id = $2";
            let rows = self.read_rows(session, find, &[&session.tenant, &id_text(session)]).await?;
            Ok(rows.first().map(|row| SessionRecord {
                log_level: row.get(0),
                subscriptions: row.get(1),
                has_ended: row.get(2),
            }))
        })
    }

    fn change<'a>(
        &'a self,
        session: &'a SessionKey,
        change: SessionChange,
    ) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move {
            let (set, new, removed) = match change {
                SessionChange::LogLevel(level) => {
                    let new = SessionRecord { log_level: Some(level), ..SessionRecord::default() };
                    ("log_level = excluded.log_level", new, None)
                }
                SessionChange::Subscribe(uri) => {
                    let new = SessionRecord { subscriptions: vec![uri.clone()], ..SessionRecord::default() };
                    (ADD_SUBSCRIPTION, new, Some(uri))
                }
                SessionChange::Unsubscribe(uri) => (
                    "subscriptions = array_remove(sessions.subscriptions, $6)",
                    SessionRecord::default(),
                    Some(uri),
                ),
                SessionChange::End => {
                    let new = SessionRecord { has_ended: true, ..SessionRecord::default() };
                    ("has_ended = true", new, None)
                }
            };
            let put = format!(
                "INSERT INTO sessions (tenant, id, log_level, subscriptions, has_ended)
                 VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (tenant, id) DO UPDATE SET {set}, changed = clock_timestamp()"
            );
            let values: [&dyn Value; 6] = [
                &session.tenant,
                &id_text(session),
                &new.log_level,
                &new.subscriptions,
                &new.has_ended,
                &removed,
            ];
            self.write(session, &put, &values).await.map(drop)
        })
    }

    fn append<'a>(
        &'a self,
        session: &'a SessionKey,
        append: StreamAppend,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(self.append(session, append))
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionKey,
        number: u64,
        from: u64,
    ) -> BoxFuture<'a, StoreResult<Option<StreamPart>>> {
        Box::pin(self.read(session, number, from))
    }

    fn take_question<'a>(
        &'a self,
        session: &'a SessionKey,
        question: u64,
        owner: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<AdoptedStream>>> {
        Box::pin(async move {
            let is_held = PostgresLeaseStore::is_held("session_streams.owner");
            let take = format!(
                "UPDATE session_streams SET owner = $4, question = NULL, changed = clock_timestamp()
                 WHERE tenant = $1 AND session = $2 AND question = $3 AND call IS NOT NULL AND NOT is_finished
                    AND (owner = $4 OR NOT {is_held})
                 RETURNING number, request, next, call"
            );
            let values: [&dyn Value; 4] = [&session.tenant, &id_text(session), &signed(question), &owner];
            self.take(session, &take, &values).await
        })
    }

    fn is_asked<'a>(
        &'a self,
        session: &'a SessionKey,
        question: u64,
        owner: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            let find = "SELECT FROM session_streams
                        WHERE tenant = $1 AND session = $2 AND question = $3 AND owner = $4";
            let values: [&dyn Value; 4] = [&session.tenant, &id_text(session), &signed(question), &owner];
            Ok(!self.read_rows(session, find, &values).await?.is_empty())
        })
    }

    fn has_open_stream<'a>(&'a self, session: &'a SessionKey) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            let find =
                "SELECT FROM session_streams WHERE tenant = $1 AND session = $2 AND NOT is_finished LIMIT 1";
            let values: [&dyn Value; 2] = [&session.tenant, &id_text(session)];
            Ok(!self.read_rows(session, find, &values).await?.is_empty())
        })
    }

    fn adopt<'a>(
        &'a self,
        session: &'a SessionKey,
        number: u64,
        owner: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<AdoptedStream>>> {
        Box::pin(async move {
            let is_held = PostgresLeaseStore::is_held("session_streams.owner");
            let adopt = format!(
                "UPDATE session_streams SET owner = $4, question = NULL, call = NULL, changed = clock_timestamp()
                 WHERE tenant = $1 AND session = $2 AND number = $3 AND {IS_RUNNING}
                    AND (owner = $4 OR NOT {is_held})
                 RETURNING number, request, next, call"
            );
            let values: [&dyn Value; 4] = [&session.tenant, &id_text(session), &signed(number), &owner];
            self.take(session, &adopt, &values).await
        })
    }
}
