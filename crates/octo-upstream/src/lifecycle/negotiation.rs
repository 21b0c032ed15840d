//! Era of a server, as learned from earlier connections.

use crate::error::UpstreamError;
use crate::session::handshake::NegotiationPlan;
use crate::upstream_spec::{TransportSpec, UpstreamSpec};
use octo_wire::Era;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const STDIO_PROBE_TIMEOUT: Duration = Duration::from_secs(3);
const HTTP_PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The era that worked last, once known.
pub(crate) struct KnownEra(Mutex<Option<Era>>);

impl KnownEra {
    pub(crate) fn new(era: Option<Era>) -> Self {
        Self(Mutex::new(era))
    }

    pub(crate) fn get(&self) -> Option<Era> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, era: Option<Era>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = era;
    }
}

/// Negotiation state of one link.
pub(crate) struct Negotiation {
    era: Arc<KnownEra>,
    /// Number of failed negotiations.
    failures: AtomicU32,
}

impl Negotiation {
    pub(crate) fn new(era: Arc<KnownEra>) -> Self {
        Self { era, failures: AtomicU32::new(0) }
    }

    /// Returns what to try first. A slow program gets more time after each failure.
    pub(crate) fn plan(&self, spec: &UpstreamSpec) -> NegotiationPlan {
        let limit = match spec.transport {
            TransportSpec::Stdio(_) => STDIO_PROBE_TIMEOUT * (1 + self.failures.load(Ordering::Relaxed)),
            TransportSpec::Http { .. } => HTTP_PROBE_TIMEOUT,
        };
        self.era
            .get()
            .map_or(NegotiationPlan::Probe(limit.min(spec.start_timeout / 2)), NegotiationPlan::Fixed)
    }

    /// Stores the era that worked and forgets one that did not. Returns the era if it is new.
    pub(crate) fn record(
        &self,
        spec: &UpstreamSpec,
        plan: NegotiationPlan,
        outcome: Result<Era, &UpstreamError>,
    ) -> Option<Era> {
        if spec.era.is_some() {
            return None;
        }
        let is_child = matches!(spec.transport, TransportSpec::Stdio(_));
        let known = match (outcome, plan) {
            (Ok(era), _) => Some(era),
            (
                Err(
                    UpstreamError::NotSent(_)
                    | UpstreamError::Unauthorized(_)
                    | UpstreamError::CredentialUnusable(_)
                    | UpstreamError::StartRefused(_),
                ),
                _,
            ) => return None,
            // Some legacy programs exit if the first message is not the handshake they expect.
            (Err(UpstreamError::ConnectionLost(_)), NegotiationPlan::Probe(_)) if is_child => {
                Some(Era::Legacy)
            }
            (Err(_), _) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                None
            }
        };
        self.era.set(known);
        known
    }
}
