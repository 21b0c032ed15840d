//! Opens sessions: connects, logs in, and drives the connection in a task.

use crate::{PostgresError, PostgresOptions};
use octo_grants::sql::DbAddress;
use octo_model::Secret;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use tokio_util::task::AbortOnDropHandle;

pub(crate) struct Connector {
    address: DbAddress,
    config: Config,
    /// The host that accepted the last session.
    last_host: AtomicUsize,
}

/// A session. Dropping it closes the connection, and the server rolls back what was not committed.
pub(crate) struct Session {
    pub(crate) client: Client,
    _driver: AbortOnDropHandle<()>,
}

impl Connector {
    pub(crate) fn new(options: &PostgresOptions) -> Result<Self, PostgresError> {
        let address =
            DbAddress::parse("store", &options.dsn, &options.net).map_err(PostgresError::Address)?;
        let mut config = Config::new();
        config.user(address.user()).dbname(address.database()).application_name("octoprox");
        if let Some(password) = address.password() {
            config.password(Secret::expose(password));
        }
        if let Some(options) = address.server_options() {
            config.options(options);
        }
        Ok(Self { address, config, last_host: AtomicUsize::new(0) })
    }

    /// Opens a session on the first host that accepts writes, beginning with that of the last session.
    /// `on_notice` gets the payload of each notification.
    pub(crate) async fn open(
        &self,
        on_notice: impl Fn(&str) + Clone + Send + 'static,
    ) -> Result<Session, PostgresError> {
        let (count, first) = (self.address.host_count(), self.last_host.load(Ordering::Relaxed));
        let mut failure = None;
        for host in (0..count).map(|step| (first + step) % count) {
            let session = self.open_on(host, on_notice.clone());
            let session = tokio::time::timeout(self.connect_timeout(), session).await;
            match session.unwrap_or(Err(PostgresError::ConnectTimeout)) {
                Ok(session) => {
                    self.last_host.store(host, Ordering::Relaxed);
                    return Ok(session);
                }
                // An answer says more than a host that is down.
                Err(error) if failure.is_none() || matches!(error, PostgresError::Refused(_)) => {
                    failure = Some(error);
                }
                Err(_) => {}
            }
        }
        Err(failure.unwrap_or(PostgresError::NoPrimary))
    }

    fn connect_timeout(&self) -> Duration {
        self.address.connect_timeout()
    }

    async fn open_on(
        &self,
        host: usize,
        on_notice: impl Fn(&str) + Send + 'static,
    ) -> Result<Session, PostgresError> {
        let stream = self.address.connect(host).await.map_err(PostgresError::Unreachable)?;
        let (client, mut connection) = self.config.connect_raw(stream, NoTls).await?;
        let driver = tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(notice) = message {
                    on_notice(notice.payload());
                }
            }
        });
        let session = Session { client, _driver: AbortOnDropHandle::new(driver) };
        if self.address.host_count() > 1 {
            let answer = session.client.query_typed("SELECT pg_is_in_recovery()", &[]).await?;
            if answer.first().is_none_or(|row| row.get(0)) {
                return Err(PostgresError::NoPrimary);
            }
        }
        Ok(session)
    }
}
