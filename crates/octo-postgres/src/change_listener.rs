//! Notifications of changes. A writing transaction sends one with its end; a session of its own receives those of all
//! hubs, while there are subscribers. A notification only wakes: whoever is woken reads the tables.

use crate::PostgresError;
use crate::connector::{Connector, Session};
use crate::pool::Pool;
use crate::value::{Value, typed};
use aws_lc_rs::rand;
use octo_model::hex;
use octo_ports::{ChangeNotifier, Changes, Port};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

/// Ports that can be waited for, with the payload of their notifications.
const PORTS: [(Port, &str); 5] = [
    (Port::Credentials, "credentials"),
    (Port::FleetRecords, "fleet_records"),
    (Port::Leases, "leases"),
    (Port::Pins, "pins"),
    (Port::Runs, "runs"),
];
/// First word of the payload of a delivery check.
const DELIVERY_CHECK: &str = "check ";
/// How long a delivery check may take.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of wake-ups where notifications are not delivered, as behind PgBouncer in transaction mode.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Wake-ups until delivery is checked again.
const POLLS: u32 = 60;
const SESSION_CHECK_INTERVAL: Duration = Duration::from_secs(5);
const SESSION_CHECK_TIMEOUT: Duration = Duration::from_secs(5);
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct ChangeListener {
    channel: String,
    notifiers: Arc<[(&'static str, ChangeNotifier); PORTS.len()]>,
    connector: Arc<Connector>,
    pool: Arc<Pool>,
    /// Held by the subscribers.
    task: Mutex<Weak<AbortOnDropHandle<()>>>,
}

impl ChangeListener {
    pub(crate) fn new(connector: Arc<Connector>, pool: Arc<Pool>, schema: &str) -> Self {
        Self {
            channel: format!("octoprox {schema}"),
            notifiers: Arc::new(PORTS.map(|(_, payload)| (payload, ChangeNotifier::default()))),
            connector,
            pool,
            task: Mutex::default(),
        }
    }

    /// The channel and payload for changes of this port.
    pub(crate) fn notice(&self, port: Port) -> (String, &'static str) {
        let payload = PORTS.iter().find(|(known, _)| *known == port).map_or("", |(_, payload)| *payload);
        (self.channel.clone(), payload)
    }

    /// This process has written.
    pub(crate) fn notify(&self, port: Port) {
        let (_, payload) = self.notice(port);
        notify(&*self.notifiers, payload);
    }

    /// Needs a runtime, which listens.
    pub(crate) fn subscribe(self: &Arc<Self>, port: Port) -> Changes {
        let (_, payload) = self.notice(port);
        let notifier = self.notifiers.iter().find(|(known, _)| *known == payload);
        let changes =
            notifier.map_or_else(ChangeNotifier::default, |(_, notifier)| notifier.clone()).subscribe();
        let mut current = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let task = current.upgrade().filter(|task| !task.is_finished()).unwrap_or_else(|| {
            let listener = Arc::clone(self);
            Arc::new(AbortOnDropHandle::new(tokio::spawn(async move { listener.listen().await })))
        });
        *current = Arc::downgrade(&task);
        changes.with_listener(task)
    }

    async fn listen(&self) {
        loop {
            if let Err(error) = self.listen_once().await {
                tracing::warn!(%error, "notifications of the database were interrupted");
            }
            // Notifications may have been lost.
            self.notify_all();
            sleep(RECONNECT_INTERVAL).await;
        }
    }

    /// Returns when another session is needed.
    async fn listen_once(&self) -> Result<(), PostgresError> {
        let (notifiers, delivered) = (Arc::clone(&self.notifiers), watch::Sender::new(String::new()));
        let sender = delivered.clone();
        let session = self.connector.open(move |payload| match payload.strip_prefix(DELIVERY_CHECK) {
            Some(id) => drop(sender.send_replace(id.to_owned())),
            None => notify(&*notifiers, payload),
        });
        let session = session.await?;
        let listen = session.client.batch_execute(&format!("LISTEN \"{}\"", self.channel)).await;
        listen?;
        // Whatever was written before.
        self.notify_all();
        if self.is_delivered(&delivered).await? {
            return check_session(&session).await;
        }
        tracing::info!("the database does not deliver notifications: changes are polled every second");
        for _ in 0..POLLS {
            sleep(POLL_INTERVAL).await;
            self.notify_all();
        }
        Ok(())
    }

    /// Sends a notification through another session, and waits for it.
    async fn is_delivered(&self, delivered: &watch::Sender<String>) -> Result<bool, PostgresError> {
        let mut id = [0; 8];
        rand::fill(&mut id).map_err(|_| PostgresError::Refused("no random bytes".to_owned()))?;
        let (id, mut delivered) = (hex(&id), delivered.subscribe());
        let payload = format!("{DELIVERY_CHECK}{id}");
        let values: [&dyn Value; 2] = [&self.channel, &payload];
        let session = self.pool.session().await?;
        session.client.query_typed("SELECT pg_notify($1, $2)", &typed(&values)).await?;
        let arrival = timeout(DELIVERY_TIMEOUT, delivered.wait_for(|last| *last == id)).await;
        Ok(arrival.is_ok())
    }

    fn notify_all(&self) {
        for (_, notifier) in &*self.notifiers {
            notifier.notify();
        }
    }
}

fn notify(notifiers: &[(&'static str, ChangeNotifier)], payload: &str) {
    for (_, notifier) in notifiers.iter().filter(|(known, _)| *known == payload) {
        notifier.notify();
    }
}

/// Returns once the session fails.
async fn check_session(session: &Session) -> Result<(), PostgresError> {
    loop {
        sleep(SESSION_CHECK_INTERVAL).await;
        let check = timeout(SESSION_CHECK_TIMEOUT, session.client.batch_execute("SELECT 1")).await;
        check.map_err(|_| PostgresError::Timeout)??;
    }
}
