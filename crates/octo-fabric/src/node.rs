//! A node: one process of the fleet on the bus.

use crate::address::check_name;
use crate::fleet_metrics::FRONT_KIND;
use crate::frame::MAX_HEADER_LEN;
use crate::inbox::{Inbox, ReplyAddress};
use crate::{Bus, BusError, BusState, CallerResults, Subject};
use octo_admission::CallSlots;
use std::sync::Arc;
use std::time::Duration;

/// Maximum bytes of a part of a large message.
const MAX_PART_BYTES: usize = 256 << 10;

/// Calls of all other nodes at the same time. Further ones are refused, so that their callers can try elsewhere.
const MAX_RUNNING_CALLS: usize = 1280;

pub struct Node {
    name: String,
    bus: Arc<dyn Bus>,
    inbox: Inbox,
    caller_results: CallerResults,
    /// Of the calls that it runs for other nodes.
    call_slots: Arc<CallSlots>,
    /// Of the requests that belong to its calls and that other fronts relay.
    relay_slots: Arc<CallSlots>,
}

impl Node {
    /// Opens the inbox of this process. The name is unique in the fleet.
    pub async fn open(name: impl Into<String>, bus: Arc<dyn Bus>) -> Result<Arc<Self>, BusError> {
        let name = name.into();
        check_name(&name).map_err(|error| BusError::Refused(error.to_string()))?;
        let inbox = Inbox::open(&bus, &name).await?;
        Ok(Arc::new(Self {
            name,
            bus,
            inbox,
            caller_results: CallerResults::default(),
            call_slots: Arc::new(CallSlots::new("worker", MAX_RUNNING_CALLS)),
            relay_slots: Arc::new(CallSlots::new("front", MAX_RUNNING_CALLS)),
        }))
    }

    /// The slots of a kind of service.
    pub(crate) fn slots(&self, service: &str) -> &Arc<CallSlots> {
        if service == FRONT_KIND { &self.relay_slots } else { &self.call_slots }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn bus(&self) -> &Arc<dyn Bus> {
        &self.bus
    }

    /// Where tools that run for other nodes store results.
    pub fn caller_results(&self) -> &CallerResults {
        &self.caller_results
    }

    pub(crate) fn is_connected(&self) -> bool {
        matches!(*self.bus.state().borrow(), BusState::Connected(_))
    }

    /// Waits for the connection to the bus; returns whether there is one.
    pub async fn connects_within(&self, at_most: Duration) -> bool {
        let mut state = self.bus.state();
        let connected = state.wait_for(|state| matches!(state, BusState::Connected(_)));
        matches!(tokio::time::timeout(at_most, connected).await, Ok(Ok(_)))
    }

    /// An address for the replies to a message to `to`.
    pub(crate) fn reply_address(&self, to: &Subject) -> Result<ReplyAddress, BusError> {
        self.inbox.reply_address(to)
    }

    /// Maximum bytes of the body of one frame.
    pub(crate) fn part_len(&self) -> usize {
        MAX_PART_BYTES.min(self.bus.max_payload().saturating_sub(MAX_HEADER_LEN)).max(1)
    }
}
