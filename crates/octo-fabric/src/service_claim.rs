//! The right to serve something where the nodes share no database: those that claim it hear each other.
//!
//! A node that serves objects to every other claim. Of several that claim at the same time, or that served apart from each
//! other until the bus connected them again, the one with the smallest id stays.

use crate::address::claims_of;
use crate::frame::Frame;
use crate::lease_check::LeaseCheck;
use crate::node::Node;
use crate::{BusError, Message, Subject, Subscription};
use futures_util::StreamExt;
use octo_ports::random_id::new_id;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

/// Kind of the message with a claim.
const CLAIM: u8 = 49;
/// How long others may object.
const OBJECTION_TIMEOUT: Duration = Duration::from_millis(500);
/// How often a claim is repeated, since a message can be lost.
const CLAIM_INTERVAL: Duration = Duration::from_secs(2);

/// Held until it is dropped, or another node with a better claim is heard.
pub struct ServiceClaim {
    check: LeaseCheck,
    _defence: AbortOnDropHandle<()>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    id: String,
    /// Whether it serves already.
    is_serving: bool,
}

impl Claim {
    fn beats(&self, other: &Self) -> bool {
        match (self.is_serving, other.is_serving) {
            (true, false) => true,
            (false, true) => false,
            _ => self.id < other.id,
        }
    }
}

impl ServiceClaim {
    /// Claims a service; `None` if another node objects.
    pub async fn acquire(node: &Arc<Node>, name: &str) -> Result<Option<Self>, BusError> {
        let id = new_id("").map_err(|error| BusError::Refused(error.to_string()))?;
        let mut claims =
            Claims { node: Arc::clone(node), subject: claims_of(name), own: Claim { id, is_serving: false } };
        let mut others = node.bus().subscribe(&claims.subject, None).await?;
        claims.publish().await?;
        let deadline = Instant::now() + OBJECTION_TIMEOUT;
        while let Ok(message) = timeout_at(deadline, others.next()).await {
            let message = message.ok_or(BusError::Disconnected)?;
            if claims.is_beaten(message).await {
                return Ok(None);
            }
        }
        claims.own.is_serving = true;
        let check = LeaseCheck::new(0);
        check.extend(0, Duration::MAX);
        let defence = tokio::spawn(claims.defend(others, check.clone()));
        Ok(Some(Self { check, _defence: AbortOnDropHandle::new(defence) }))
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
    own: Claim,
}

impl Claims {
    async fn publish(&self) -> Result<(), BusError> {
        let body = serde_json::to_vec(&self.own).map_err(|error| BusError::Refused(error.to_string()))?;
        let frame = Frame::Whole { sequence: 0, kind: CLAIM, body: body.into() };
        self.node.bus().publish(Message::new(self.subject.clone(), None, frame.encode())).await
    }

    /// Returns whether another claim is better; answers one that is not.
    async fn is_beaten(&self, message: Message) -> bool {
        let Ok(Frame::Whole { kind: CLAIM, body, .. }) = Frame::decode(message.payload) else {
            return false;
        };
        let Ok(other) = serde_json::from_slice::<Claim>(&body) else { return false };
        if other.id == self.own.id {
            return false;
        }
        if other.beats(&self.own) {
            return true;
        }
        // If it is lost, the next one follows soon.
        let _ = self.publish().await;
        false
    }

    async fn defend(self, mut others: Subscription, check: LeaseCheck) {
        let mut bus_state = self.node.bus().state();
        let mut repeat = tokio::time::interval(CLAIM_INTERVAL);
        loop {
            tokio::select! {
                message = others.next() => {
                    let Some(message) = message else { break };
                    if self.is_beaten(message).await {
                        break;
                    }
                }
                _ = repeat.tick() => drop(self.publish().await),
                Ok(()) = bus_state.changed() => drop(self.publish().await),
            }
        }
        check.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_have_one_order() {
        let claim = |id: &str, is_serving| Claim { id: id.to_owned(), is_serving };
        assert!(claim("b", true).beats(&claim("a", false)));
        assert!(!claim("a", false).beats(&claim("b", true)));
        for is_serving in [true, false] {
            assert!(claim("a", is_serving).beats(&claim("b", is_serving)));
            assert!(!claim("b", is_serving).beats(&claim("a", is_serving)));
        }
    }
}
