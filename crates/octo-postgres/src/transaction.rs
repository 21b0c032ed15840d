//! Transactions. Statements are unnamed and settings local to the transaction, so that a pooler between the hub and
//! the server may give each transaction another session.

use crate::PostgresError;
use crate::change_listener::ChangeListener;
use crate::pool::{self, PooledSession};
use crate::value::{Value, typed};
use octo_admission::FairSlot;
use octo_ports::{Port, StoreResult};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::error::Elapsed;
use tokio_postgres::{Client, Row};

/// For one statement, from the client's point of view. Exceeds that of the server, which knows the reason.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(35);
/// For one statement, for a lock, and for the next statement of a holder of locks that was stopped.
const SERVER_TIMEOUTS: [(&str, &str); 3] =
    [("statement_timeout", "30s"), ("lock_timeout", "10s"), ("idle_in_transaction_session_timeout", "10s")];

/// The other side of a copy may take its time.
const COPY_IDLE_TIMEOUT: &str = "10min";

/// The tenants whose rows a transaction sees.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    Tenant(&'a str),
    /// For the hub's own work, and for tables without tenants.
    AllTenants,
}

/// What a transaction begins with.
#[derive(Clone)]
pub(crate) struct Prelude {
    pub(crate) schema: Arc<str>,
    tenant: Option<String>,
    begin: &'static str,
    is_copy: bool,
}

impl Prelude {
    pub(crate) fn new(schema: &Arc<str>, scope: Scope<'_>) -> Self {
        let tenant = match scope {
            Scope::Tenant(tenant) => Some(tenant.to_owned()),
            Scope::AllTenants => None,
        };
        Self { schema: Arc::clone(schema), tenant, begin: "BEGIN", is_copy: false }
    }

    /// All statements see the tables as they were at the first.
    pub(crate) fn read_only_snapshot(self) -> Self {
        Self { begin: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ..self }
    }

    /// Of a copy of all rows.
    pub(crate) fn for_copy(self) -> Self {
        Self { is_copy: true, ..self }
    }

    pub(crate) async fn send(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        let (tenant, all_tenants) = match &self.tenant {
            Some(tenant) => (tenant.as_str(), ""),
            None => ("", "on"),
        };
        let [statement, lock, mut idle] = SERVER_TIMEOUTS;
        if self.is_copy {
            idle.1 = COPY_IDLE_TIMEOUT;
        }
        let settings = [
            ("search_path", &*self.schema),
            ("octoprox.tenant", tenant),
            ("octoprox.all_tenants", all_tenants),
            statement,
            lock,
            idle,
        ];
        let (names, values): (Vec<&str>, Vec<&str>) = settings.into_iter().unzip();
        let set = "SELECT count(set_config(name, value, true)) FROM unnest($1::text[], $2::text[]) AS s (name, value)";
        let parameters: [&dyn Value; 2] = [&names, &values];
        let parameters = typed(&parameters);
        let (begin, set) =
            tokio::join!(biased; client.batch_execute(self.begin), client.query_typed(set, &parameters));
        begin.and(set.map(drop))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was sent yet: `BEGIN` goes with the first statement.
    New,
    Open,
    /// A statement was sent, and its result is not known.
    Busy,
    /// A statement failed.
    Failed,
    /// The connection failed, or the server did not answer.
    Lost,
    Ended,
}

/// A transaction. Dropping it rolls back.
pub(crate) struct Transaction {
    session: Option<PooledSession>,
    /// Of the tenant.
    slot: Option<FairSlot>,
    prelude: Prelude,
    port: Port,
    state: State,
    changed: Option<Port>,
    listener: Arc<ChangeListener>,
}

impl Transaction {
    pub(crate) fn new(
        session: PooledSession,
        prelude: Prelude,
        port: Port,
        listener: Arc<ChangeListener>,
    ) -> Self {
        Self { session: Some(session), slot: None, prelude, port, state: State::New, changed: None, listener }
    }

    pub(crate) fn with_slot(mut self, slot: Option<FairSlot>) -> Self {
        self.slot = slot;
        self
    }

    pub(crate) async fn query(&mut self, sql: &str, values: &[&dyn Value]) -> StoreResult<Vec<Row>> {
        let port = self.port;
        self.try_query(sql, values).await.map_err(|error| error.into_store_error(port))
    }

    /// Later errors concern this port.
    pub(crate) fn set_port(&mut self, port: Port) {
        self.port = port;
    }

    /// The first row, if any.
    pub(crate) async fn query_opt(&mut self, sql: &str, values: &[&dyn Value]) -> StoreResult<Option<Row>> {
        Ok(self.query(sql, values).await?.into_iter().next())
    }

    /// Returns the number of rows that were changed.
    pub(crate) async fn execute(&mut self, sql: &str, values: &[&dyn Value]) -> StoreResult<u64> {
        let (port, is_new) = (self.port, self.start());
        let client = self.client().map_err(|error| error.into_store_error(port))?;
        let begin = self.begin(client, is_new);
        let answer = bounded(begin, client.execute_typed(sql, &typed(values))).await;
        self.finish(answer).map_err(|error| error.into_store_error(port))
    }

    pub(crate) async fn try_query(
        &mut self,
        sql: &str,
        values: &[&dyn Value],
    ) -> Result<Vec<Row>, PostgresError> {
        let is_new = self.start();
        let client = self.client()?;
        let answer = bounded(self.begin(client, is_new), client.query_typed(sql, &typed(values))).await;
        self.finish(answer)
    }

    async fn begin(&self, client: &Client, is_new: bool) -> Result<(), tokio_postgres::Error> {
        if is_new { self.prelude.send(client).await } else { Ok(()) }
    }

    /// Wakes those who wait for changes of this port, here and at other hubs, once the transaction is committed.
    pub(crate) fn announce(&mut self, port: Port) {
        self.changed = Some(port);
    }

    pub(crate) async fn commit(mut self) -> StoreResult<()> {
        let port = self.port;
        self.try_commit().await.map_err(|error| error.into_store_error(port))
    }

    async fn try_commit(&mut self) -> Result<(), PostgresError> {
        match self.state {
            State::New | State::Ended => return Ok(()),
            State::Open => {}
            State::Busy | State::Failed | State::Lost => {
                return Err(PostgresError::Refused("a statement of the transaction failed".to_owned()));
            }
        }
        self.state = State::Busy;
        let client = self.client()?;
        let notice = self.changed.map(|port| self.listener.notice(port));
        let notify = async {
            let Some((channel, payload)) = &notice else { return Ok(()) };
            let values: [&dyn Value; 2] = [channel, payload];
            client.query_typed("SELECT pg_notify($1, $2)", &typed(&values)).await.map(drop)
        };
        let answer = bounded(notify, client.batch_execute("COMMIT")).await;
        self.finish(answer)?;
        self.state = State::Ended;
        if let Some(port) = self.changed {
            self.listener.notify(port);
        }
        Ok(())
    }

    /// Sends the transaction with its only statement and its end in one round trip.
    pub(crate) async fn query_and_commit(
        mut self,
        sql: &str,
        values: &[&dyn Value],
    ) -> Result<Vec<Row>, PostgresError> {
        self.start();
        let client = self.client()?;
        let parameters = typed(values);
        let only_statement = async {
            let (rows, committed) = tokio::join!(biased;
                client.query_typed(sql, &parameters), client.batch_execute("COMMIT"));
            rows.and_then(|rows| committed.map(|()| rows))
        };
        let answer = bounded(self.prelude.send(client), only_statement).await;
        let answer = self.finish(answer);
        // The end was sent, whatever became of the statement.
        if self.state != State::Lost {
            self.state = State::Ended;
        }
        answer
    }

    /// Returns whether the transaction must begin.
    fn start(&mut self) -> bool {
        std::mem::replace(&mut self.state, State::Busy) == State::New
    }

    fn client(&self) -> Result<&Client, PostgresError> {
        let session = self.session.as_ref();
        session.map(|session| &session.client).ok_or_else(|| PostgresError::Disconnected("closed".to_owned()))
    }

    fn finish<T>(&mut self, answer: Answer<T>) -> Result<T, PostgresError> {
        match answer {
            Ok(Ok(value)) => {
                self.state = State::Open;
                Ok(value)
            }
            Ok(Err(error)) => {
                self.state = if PostgresError::ends_session(&error) { State::Lost } else { State::Failed };
                Err(error.into())
            }
            Err(_) => {
                self.state = State::Lost;
                Err(PostgresError::Timeout)
            }
        }
    }
}

type Answer<T> = Result<Result<T, tokio_postgres::Error>, Elapsed>;

/// Sends two requests in one round trip, in this order, and returns the answer to the second.
async fn bounded<T>(
    first: impl Future<Output = Result<(), tokio_postgres::Error>>,
    second: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Answer<T> {
    tokio::time::timeout(STATEMENT_TIMEOUT, async {
        // The first poll of a request sends it.
        let (first, second) = tokio::join!(biased; first, second);
        first.and(second)
    })
    .await
}

/// The server still runs the statement of a caller that is gone: until it answers, the session and the share of its
/// tenant are in use.
fn wait_for_statement(session: PooledSession, slot: FairSlot) {
    let Ok(runtime) = Handle::try_current() else {
        drop(PooledSession::take(session));
        return;
    };
    runtime.spawn(async move {
        let answer = tokio::time::timeout(STATEMENT_TIMEOUT, session.client.batch_execute("ROLLBACK")).await;
        match answer {
            Ok(Ok(())) => drop(session),
            _ => drop(PooledSession::take(session)),
        }
        drop(slot);
    });
}

impl Drop for Transaction {
    /// A session whose state is known goes back to the pool.
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        match self.state {
            State::New | State::Ended => {}
            State::Busy => match self.slot.take() {
                Some(slot) => wait_for_statement(session, slot),
                // The hub's own work has few sessions, and tries again with another one, which may be at another server.
                None => drop(PooledSession::take(session)),
            },
            State::Lost => pool::discard(session),
            State::Open | State::Failed => {
                let rollback = session.client.batch_execute("ROLLBACK");
                // The first poll sends it, and the answer is of no interest.
                let mut rollback = std::pin::pin!(rollback);
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                let _ = rollback.as_mut().poll(&mut context);
            }
        }
    }
}
