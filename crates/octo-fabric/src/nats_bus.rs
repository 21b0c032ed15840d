//! The bus on NATS.

pub mod nats_check;

use crate::{Bus, BusError, BusState, Message, MessageStream, Subject, Subscription, fleet_metrics};
use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, ServerAddr, StatusCode, Subscriber};
use futures_util::{Stream, StreamExt};
use nkeys::KeyPair;
use octo_grants::tls::verified_tls;
use octo_model::{BoxFuture, Secret};
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// How long a message waits for the connection while others are written.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(5);
/// Two of them without an answer, and the connection counts as lost.
const PING_INTERVAL: Duration = Duration::from_secs(2);
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(2);
const MIN_RECONNECT_DELAY: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub struct NatsOptions {
    /// `nats://host:port`, or `tls://host:port`. Others that these know are not used.
    pub servers: Vec<String>,
    pub credentials: NatsCredentials,
    /// Certificates that TLS trusts instead of those of the system.
    pub ca_file: Option<PathBuf>,
    /// Name of the connection, for the operator of the servers.
    pub node: String,
    /// Use servers that accept anybody, too.
    pub allow_open: bool,
}

#[derive(Clone)]
pub enum NatsCredentials {
    None,
    /// Seed of an nkey (`SU…`).
    NKey(Secret),
    /// A user JWT with its seed, as in a `.creds` file.
    Jwt(Secret),
}

pub struct NatsBus {
    client: Client,
    state: watch::Receiver<BusState>,
    _observer: AbortOnDropHandle<()>,
}

impl NatsBus {
    /// Connects in the background, now and whenever the connection is lost.
    pub async fn connect(options: &NatsOptions) -> Result<Self, BusError> {
        let servers = server_addresses(&options.servers)?;
        let (connection, connections) = watch::channel(BusState::Disconnected);
        fleet_metrics::set_bus_connected(false);
        let reporter = Arc::new(Reporter { state: connection, connections: AtomicU64::new(0) });
        let connect = connect_options(options, &servers)?
            .event_callback(move |event| {
                let reporter = Arc::clone(&reporter);
                async move { reporter.report(&event) }
            })
            .retry_on_initial_connect()
            .skip_subject_validation(true)
            .ping_interval(PING_INTERVAL)
            .reconnect_delay_callback(reconnect_delay);
        let client = connect.connect(servers).await.map_err(refused)?;
        let (state, receiver) = watch::channel(BusState::Disconnected);
        let observer = observe(client.clone(), connections, state, options.allow_open);
        let _observer = AbortOnDropHandle::new(tokio::spawn(observer));
        Ok(Self { client, state: receiver, _observer })
    }

    async fn send(&self, message: Message) -> Result<(), BusError> {
        let is_usable = matches!(*self.state.borrow(), BusState::Connected(_));
        if !is_usable || self.client.connection_state() != State::Connected {
            return Err(BusError::Disconnected);
        }
        let (subject, len) = (message.subject.as_str().to_owned(), message.payload.len());
        if len > self.client.max_payload() {
            return Err(BusError::TooLarge(len));
        }
        let sent = async {
            match message.reply {
                Some(reply) => {
                    self.client.publish_with_reply(subject, reply.as_str().to_owned(), message.payload).await
                }
                None => self.client.publish(subject, message.payload).await,
            }
        };
        let mut sent = std::pin::pin!(sent);
        // Usually there is room, and no timer needs to be set.
        let sent = match poll_fn(|cx| Poll::Ready(sent.as_mut().poll(cx))).await {
            Poll::Ready(sent) => sent,
            Poll::Pending => timeout(PUBLISH_TIMEOUT, sent).await.map_err(|_| BusError::Busy)?,
        };
        sent.map_err(refused)
    }
}

/// Passes on the state of connections to servers that may be used.
async fn observe(
    client: Client,
    mut connections: watch::Receiver<BusState>,
    state: watch::Sender<BusState>,
    allow_open: bool,
) {
    loop {
        let mut current = *connections.borrow_and_update();
        if matches!(current, BusState::Connected(_)) {
            // The client knows what the server said of itself once it uses the connection.
            tokio::select! {
                _ = client.flush() => {}
                changed = connections.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
            }
            if !allow_open && !client.server_info().auth_required {
                tracing::error!("the NATS server accepts anybody without credentials, so it is not used");
                current = BusState::Open;
            }
        }
        let is_connected = matches!(current, BusState::Connected(_));
        fleet_metrics::set_bus_connected(is_connected);
        state.send_if_modified(|known| {
            let is_new = *known != current;
            *known = current;
            is_new
        });
        if is_connected {
            tracing::info!("connected to the message bus");
        }
        if connections.changed().await.is_err() {
            return;
        }
    }
}

/// What every connection to these servers has in common.
pub(crate) fn connect_options(
    options: &NatsOptions,
    servers: &[ServerAddr],
) -> Result<ConnectOptions, BusError> {
    let connect = with_credentials(&options.credentials)?.name(&options.node).ignore_discovered_servers();
    if !servers.iter().any(ServerAddr::tls_required) {
        return Ok(connect);
    }
    let tls = verified_tls(options.ca_file.as_deref());
    Ok(connect.require_tls(true).tls_client_config(tls.map_err(refused)?))
}

pub(crate) fn server_addresses(servers: &[String]) -> Result<Vec<ServerAddr>, BusError> {
    if servers.is_empty() {
        return Err(BusError::Invalid("no server is configured"));
    }
    let addresses = servers.iter().map(|server| {
        let address: ServerAddr =
            server.parse().map_err(|_| BusError::Invalid("a server is not an address"))?;
        if address.has_user_pass() {
            return Err(BusError::Invalid("the address of a server contains credentials"));
        }
        Ok(address)
    });
    addresses.collect()
}

fn with_credentials(credentials: &NatsCredentials) -> Result<ConnectOptions, BusError> {
    match credentials {
        NatsCredentials::None => Ok(ConnectOptions::new()),
        NatsCredentials::NKey(seed) => {
            let seed = seed.expose().trim();
            // The client would report it only when it connects, and try again for ever.
            let key = KeyPair::from_seed(seed);
            key.map_err(|_| BusError::Invalid("the credentials are not the seed of an nkey"))?;
            Ok(ConnectOptions::with_nkey(seed.to_owned()))
        }
        // The message of the error could contain a part of the secret.
        NatsCredentials::Jwt(text) => ConnectOptions::with_credentials(text.expose())
            .map_err(|_| BusError::Invalid("the credentials are not those of a NATS user")),
    }
}

/// A new user for the configuration of a NATS server: its seed, and its public key.
pub fn new_nkey() -> Result<(Secret, String), BusError> {
    let key = KeyPair::new_user();
    let seed = key.seed().map_err(refused)?;
    Ok((Secret::new(seed), key.public_key()))
}

fn reconnect_delay(attempts: usize) -> Duration {
    let doublings = u32::try_from(attempts.min(10)).unwrap_or(10);
    MIN_RECONNECT_DELAY.saturating_mul(1 << doublings).min(MAX_RECONNECT_DELAY)
}

/// Reports what happens to the connection.
struct Reporter {
    state: watch::Sender<BusState>,
    connections: AtomicU64,
}

impl Reporter {
    fn report(&self, event: &Event) {
        match event {
            Event::Connected => {
                let count = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
                self.state.send_replace(BusState::Connected(count));
                if count > 1 {
                    fleet_metrics::count_reconnect();
                }
            }
            Event::Disconnected | Event::Closed => {
                self.state.send_replace(BusState::Disconnected);
                tracing::warn!("the connection to the message bus was lost");
            }
            Event::SlowConsumer(_) => {
                tracing::warn!("messages of the bus were dropped: this node is too slow");
            }
            Event::ServerError(error) => tracing::warn!(%error, "the message bus reported an error"),
            Event::ClientError(error) => tracing::warn!(%error, "the connection to the message bus failed"),
            Event::LameDuckMode | Event::Draining => {}
        }
    }
}

fn refused(reason: impl std::fmt::Display) -> BusError {
    BusError::Refused(reason.to_string())
}

struct NatsSubscription(Subscriber);

impl Stream for NatsSubscription {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        self.0.poll_next_unpin(cx).map(|message| {
            message.map(|message| Message {
                subject: Subject::new(message.subject.as_str()),
                reply: message.reply.map(|reply| Subject::new(reply.as_str())),
                payload: message.payload,
                no_responders: message.status == Some(StatusCode::NO_RESPONDERS),
            })
        })
    }
}

impl MessageStream for NatsSubscription {
    fn drain(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // It fails only if the connection has ended for good, and then the stream ends as well.
            let _ = self.0.drain().await;
        })
    }
}

impl Bus for NatsBus {
    fn publish<'a>(&'a self, message: Message) -> BoxFuture<'a, Result<(), BusError>> {
        Box::pin(self.send(message))
    }

    fn subscribe<'a>(
        &'a self,
        subject: &'a Subject,
        group: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Subscription, BusError>> {
        Box::pin(async move {
            let subject = subject.as_str().to_owned();
            let subscribed = async {
                match group {
                    Some(group) => self.client.queue_subscribe(subject, group.to_owned()).await,
                    None => self.client.subscribe(subject).await,
                }
            };
            let subscriber = timeout(PUBLISH_TIMEOUT, subscribed).await.map_err(|_| BusError::Busy)?;
            Ok(Box::new(NatsSubscription(subscriber.map_err(refused)?)) as Subscription)
        })
    }

    fn state(&self) -> watch::Receiver<BusState> {
        self.state.clone()
    }

    fn max_payload(&self) -> usize {
        self.client.max_payload()
    }
}
