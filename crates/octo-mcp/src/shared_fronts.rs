//! What the fronts of a fleet share, so that any of them takes the next request of a client.

mod front_lease;
mod front_link;
mod parked_call;
mod session_token;
mod stream_follower;
mod stream_writer;

pub use front_link::{FrontLink, FrontMessage, FrontMessageBody, RelayedRequest};
pub(crate) use parked_call::ParkedCall;
pub(crate) use session_token::SessionToken;
pub(crate) use stream_follower::{StreamFollower, finish_lost};
pub(crate) use stream_writer::store_events;

use crate::request_state::StateSealer;
use front_lease::FrontLease;
use octo_ports::sessions::{SessionChange, SessionKey};
use octo_ports::{Keyring, Leases, Sessions, StoreResult};
use std::sync::Arc;
use std::time::Duration;

/// The parts of [`SharedFronts`].
pub struct SharedFrontsConfig {
    pub sessions: Sessions,
    pub leases: Arc<dyn Leases>,
    /// The same at all fronts.
    pub keys: Keyring,
    /// Without it, an answer reaches only the front that asked.
    pub link: Option<Arc<dyn FrontLink>>,
}

pub(crate) struct SharedFronts {
    pub sessions: Sessions,
    pub link: Option<Arc<dyn FrontLink>>,
    lease: FrontLease,
}

impl SharedFronts {
    /// Needs a runtime.
    pub fn new(config: SharedFrontsConfig) -> (Arc<Self>, StateSealer) {
        let lease = FrontLease::spawn(config.leases);
        let fronts = Self { sessions: config.sessions, link: config.link, lease };
        (Arc::new(fronts), StateSealer::with_keys(config.keys))
    }

    /// Name of this process as the owner of streams. Waits until others can see that it is alive.
    pub async fn owner(&self) -> &str {
        self.lease.acquired().await
    }

    /// Whether this process may continue the streams of others.
    pub fn may_adopt(&self) -> bool {
        self.lease.is_settled()
    }

    /// Waits until others may have taken streams of this process.
    pub async fn lease_gap(&self) {
        self.lease.gap().await;
    }

    /// Name of this node, if others can reach it.
    pub fn node(&self) -> &str {
        self.link.as_ref().map_or("", |link| link.node())
    }

    /// Lets others continue the streams of this process.
    pub async fn leave(&self) {
        self.lease.release().await;
    }

    /// Sends a message about a session to the other fronts; returns whether one of them has taken it.
    pub async fn send(&self, session: &SessionKey, body: FrontMessageBody) -> bool {
        let Some(link) = &self.link else { return false };
        link.send(FrontMessage { tenant: session.tenant.clone(), session: session.id, body }).await
    }
}

/// A session that other fronts can continue.
#[derive(Clone)]
pub struct SharedSession {
    pub(crate) key: SessionKey,
    pub(crate) fronts: Arc<SharedFronts>,
}

/// How long the store is tried when an answer has arrived.
const TAKE_TIMEOUT: Duration = Duration::from_secs(10);
const TAKE_INTERVAL: Duration = Duration::from_millis(500);

impl SharedSession {
    /// Takes a question that this front asked; `None` if another one has continued its call.
    pub(crate) async fn take_own_question(&self, question: u64) -> Option<()> {
        let deadline = tokio::time::Instant::now() + TAKE_TIMEOUT;
        let owner = self.fronts.owner().await;
        loop {
            match self.fronts.sessions.take_question(&self.key, question, owner).await {
                Ok(taken) => return taken.map(drop),
                Err(_) if tokio::time::Instant::now() < deadline => tokio::time::sleep(TAKE_INTERVAL).await,
                Err(error) => {
                    tracing::warn!(target: "fleet", %error, "a call was not continued with its answer");
                    return None;
                }
            }
        }
    }

    /// Stores what the client has set, and lets the other fronts know.
    pub(crate) async fn change(&self, change: SessionChange) -> StoreResult<()> {
        self.fronts.sessions.change(&self.key, change).await?;
        self.fronts.send(&self.key, FrontMessageBody::Changed).await;
        Ok(())
    }
}
