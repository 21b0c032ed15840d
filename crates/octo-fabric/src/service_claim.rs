//! The right to serve something where the nodes share no database: those that claim it hear each other.
//!
//! A node that serves objects to every other claim. Of several that claim at the same time, or that served apart from each
//! other until the bus connected them again, the one with the smallest id stays. A lease is better than any claim.

pub mod served_files;

use crate::address::claims_of;
use crate::frame::Frame;
use crate::node::Node;
use crate::service_lease::lease_check::{LeaseCheck, now_ms};
use crate::{BusError, Message, ServedFiles, Subject, Subscription};
use futures_util::StreamExt;
use octo_ports::random_id::new_id;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};
use tokio_util::task::AbortOnDropHandle;

/// Kind of the message with a claim.
const CLAIM: u8 = 49;
/// How long others may object.
const OBJECTION_TIMEOUT: Duration = Duration::from_millis(500);
/// How often a claim is repeated, since a message can be lost.
const CLAIM_INTERVAL: Duration = Duration::from_secs(2);
/// How long a node relies on its claim after the bus delivered it. Fronts wait longer for a call.
const CLAIM_DURATION: Duration = Duration::from_secs(9);

/// Held until it is dropped, another node with a better claim is heard, or the node was suspended or not connected for
/// too long.
pub struct ServiceClaim {
    check: LeaseCheck,
    _defence: AbortOnDropHandle<()>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    id: String,
    standing: Standing,
    /// On the clock of the sender.
    sent_ms: u64,
    /// Id of the files of a workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    files: Option<String>,
}

/// What became of the claim of a service.
pub enum ClaimOutcome {
    Held(ServiceClaim),
    /// Another node serves, or was first. Its files are named if they are known.
    Objected {
        files: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    Candidate,
    Serving,
    /// Serves by a lease. Of several leases, the database knows the one that holds.
    Lease,
}

impl Claim {
    fn beats(&self, other: &Self) -> bool {
        match self.standing.cmp(&other.standing) {
            std::cmp::Ordering::Equal => self.standing != Standing::Lease && self.id < other.id,
            order => order.is_gt(),
        }
    }
}

impl ServiceClaim {
    /// Claims a service; `None` if another node objects.
    pub async fn acquire(node: &Arc<Node>, name: &str) -> Result<Option<Self>, BusError> {
        match Self::acquire_for(node, name, None).await? {
            ClaimOutcome::Held(claim) => Ok(Some(claim)),
            ClaimOutcome::Objected { .. } => Ok(None),
        }
    }

    /// Claims a workspace with these files.
    pub async fn acquire_for(
        node: &Arc<Node>,
        name: &str,
        files: Option<&ServedFiles>,
    ) -> Result<ClaimOutcome, BusError> {
        let mut connection = node.bus().state();
        connection.mark_unchanged();
        let (mut claims, mut others) =
            Claims::open(node, name, Standing::Candidate, LeaseCheck::new(0), files).await?;
        claims.publish().await?;
        let deadline = Instant::now() + OBJECTION_TIMEOUT;
        while let Ok(message) = timeout_at(deadline, others.next()).await {
            let message = message.ok_or(BusError::Disconnected)?;
            if let Some(better) = claims.better_claim(message).await {
                return Ok(ClaimOutcome::Objected { files: better.files });
            }
        }
        // A node that could not hear its own claim could not hear an objection, either.
        if !claims.check.holds() {
            return Err(BusError::Refused("the claim was not delivered".to_owned()));
        }
        if connection.has_changed().unwrap_or(true) {
            return Err(BusError::Disconnected);
        }
        claims.standing = Standing::Serving;
        Ok(ClaimOutcome::Held(claims.hold(others)))
    }

    /// Objects to the claims of nodes that do not share the database of a lease.
    pub async fn of_lease(
        node: &Arc<Node>,
        name: &str,
        lease: LeaseCheck,
        files: Option<&ServedFiles>,
    ) -> Result<Self, BusError> {
        let (claims, others) = Claims::open(node, name, Standing::Lease, lease, files).await?;
        Ok(claims.hold(others))
    }

    pub fn check(&self) -> LeaseCheck {
        self.check.clone()
    }
}

impl Drop for ServiceClaim {
    fn drop(&mut self) {
        self.check.end();
    }
}

/// The claims of one service.
struct Claims {
    node: Arc<Node>,
    subject: Subject,
    id: String,
    standing: Standing,
    check: LeaseCheck,
    files: Option<String>,
}

impl Claims {
    async fn open(
        node: &Arc<Node>,
        name: &str,
        standing: Standing,
        check: LeaseCheck,
        files: Option<&ServedFiles>,
    ) -> Result<(Self, Subscription), BusError> {
        let id = new_id("").map_err(|error| BusError::Refused(error.to_string()))?;
        let files = files.map(|files| files.id.clone());
        let claims = Self { node: Arc::clone(node), subject: claims_of(name), id, standing, check, files };
        let others = node.bus().subscribe(&claims.subject, None).await?;
        Ok((claims, others))
    }

    fn hold(self, others: Subscription) -> ServiceClaim {
        let check = self.check.clone();
        ServiceClaim { check, _defence: AbortOnDropHandle::new(tokio::spawn(self.defend(others))) }
    }

    fn own(&self) -> Claim {
        Claim { id: self.id.clone(), standing: self.standing, sent_ms: now_ms(), files: self.files.clone() }
    }

    async fn publish(&self) -> Result<(), BusError> {
        let body = serde_json::to_vec(&self.own()).map_err(|error| BusError::Refused(error.to_string()))?;
        let frame = Frame::Whole { sequence: 0, kind: CLAIM, body: body.into() };
        self.node.bus().publish(Message::new(self.subject.clone(), None, frame.encode())).await
    }

    /// Returns another claim that is better; answers one that is not.
    async fn better_claim(&self, message: Message) -> Option<Claim> {
        let Ok(Frame::Whole { kind: CLAIM, body, .. }) = Frame::decode(message.payload) else {
            return None;
        };
        let other = serde_json::from_slice::<Claim>(&body).ok()?;
        let own = self.own();
        if other.id == own.id {
            if own.standing != Standing::Lease {
                self.check.extend(other.sent_ms.min(own.sent_ms), CLAIM_DURATION);
            }
            return None;
        }
        if other.id.len() == own.id.len() && other.beats(&own) {
            return Some(other);
        }
        if own.beats(&other) {
            // If it is lost, the next one follows soon.
            let _ = self.publish().await;
        }
        None
    }

    async fn defend(self, mut others: Subscription) {
        let mut connection = self.node.bus().state();
        let mut repeat = interval(CLAIM_INTERVAL);
        repeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = others.next() => {
                    let Some(message) = message else { break };
                    if self.better_claim(message).await.is_some() {
                        break;
                    }
                    continue;
                }
                _ = repeat.tick() => {}
                Ok(()) = connection.changed() => {}
            }
            if !self.check.holds() {
                break;
            }
            let _ = self.publish().await;
        }
        self.check.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_have_one_order() {
        let claim = |id: &str, standing| Claim { id: id.to_owned(), standing, sent_ms: 0, files: None };
        let [candidate, serving, lease] = [Standing::Candidate, Standing::Serving, Standing::Lease];
        for (better, worse) in [(serving, candidate), (lease, serving), (lease, candidate)] {
            assert!(claim("b", better).beats(&claim("a", worse)));
            assert!(!claim("a", worse).beats(&claim("b", better)));
        }
        for standing in [candidate, serving] {
            assert!(claim("a", standing).beats(&claim("b", standing)));
            assert!(!claim("b", standing).beats(&claim("a", standing)));
        }
        // They would answer each other without end.
        assert!(!claim("a", lease).beats(&claim("b", lease)));
    }
}
