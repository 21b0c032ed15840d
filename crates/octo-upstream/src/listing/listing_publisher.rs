//! Published state of a server: its listing, and whether it is usable.

use crate::error::UpstreamError;
use crate::listing::listing_codec;
use crate::upstream_spec::UpstreamSpec;
use octo_ports::listings::MAX_LISTING_TEXT_BYTES;
use octo_toolkit::{Definition, Listing, ListingState, SourceState};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// With which access the current listing was obtained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ListingAccess {
    #[default]
    NotListed,
    /// Without a login.
    Anonymous,
    /// With a login if the server needs one, or before this start.
    LoggedIn,
}

pub(crate) struct ListingPublisher {
    spec: Arc<UpstreamSpec>,
    state: watch::Sender<ListingState>,
    access: Mutex<ListingAccess>,
    stop: CancellationToken,
}

impl ListingPublisher {
    pub(crate) fn new(spec: Arc<UpstreamSpec>, stop: CancellationToken) -> Self {
        let listing = ListingState { state: SourceState::Starting, listing: Arc::default(), version: 0 };
        Self { spec, state: watch::Sender::new(listing), access: Mutex::default(), stop }
    }

    pub(crate) fn current(&self) -> watch::Ref<'_, ListingState> {
        self.state.borrow()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<ListingState> {
        self.state.subscribe()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.current().state == SourceState::Ready
    }

    /// Restores the cached listing: the first list of a client does not wait for servers that are known, and callers
    /// without a login see what they would log in for.
    pub(crate) async fn restore_cached(&self) {
        let Some(lists) = &self.spec.listing_cache else { return };
        match lists.get(&self.spec.name, &listing_codec::config_fingerprint(&self.spec.transport)).await {
            Ok(known) => {
                if let Some(known) = known.and_then(listing_codec::decode) {
                    self.set_access(ListingAccess::LoggedIn);
                    self.publish(known);
                }
            }
            Err(error) => {
                tracing::warn!(target: "upstream", server = %self.spec.name, %error, "cannot read the cached listing");
            }
        }
    }

    /// Caches the current listing for the next start.
    async fn cache(&self) {
        let Some(lists) = &self.spec.listing_cache else { return };
        let text = listing_codec::encode(&self.current().listing);
        if text.len() > MAX_LISTING_TEXT_BYTES {
            let (server, size) = (&self.spec.name, text.len());
            return tracing::warn!(target: "upstream", %server, size, limit = MAX_LISTING_TEXT_BYTES, "listing not cached: too large");
        }
        let fingerprint = listing_codec::config_fingerprint(&self.spec.transport);
        if let Err(error) = lists.put(&self.spec.name, &fingerprint, text).await {
            tracing::warn!(target: "upstream", server = %self.spec.name, %error, "cannot cache the listing");
        }
    }

    /// Marks the server as down; its listing stays.
    pub(crate) fn mark_down(&self, why: &str) {
        let state = SourceState::Down(why.to_owned());
        let news = self.state.send_if_modified(|listing| {
            let changed = listing.state != state;
            if changed {
                listing.state = state;
                listing.version += 1;
            }
            changed
        });
        if news && !self.stop.is_cancelled() {
            tracing::warn!(target: "upstream", server = %self.spec.name, why, "down");
        }
    }

    /// The server needs a personal login: it is reachable, and an existing listing stays valid.
    pub(crate) fn report_login_required(&self, why: &UpstreamError) {
        match self.access() {
            ListingAccess::NotListed => self.mark_down(&why.to_string()),
            ListingAccess::Anonymous | ListingAccess::LoggedIn => self.mark_ready(),
        }
    }

    /// Publishes the listing of a link, unless a later link lists as well.
    pub(crate) async fn publish_from(&self, lists: Listing, is_anonymous: bool, is_leader: bool) {
        if is_anonymous && self.access() == ListingAccess::LoggedIn {
            // A logged-in caller may see more than this.
            return self.mark_ready();
        }
        self.set_access(if is_anonymous { ListingAccess::Anonymous } else { ListingAccess::LoggedIn });
        if (is_leader || !self.is_ready()) && self.publish(lists) {
            self.cache().await;
        }
    }

    fn access(&self) -> ListingAccess {
        *self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_access(&self, access: ListingAccess) {
        *self.access.lock().unwrap_or_else(PoisonError::into_inner) = access;
    }

    /// Marks the existing listing as valid again.
    fn mark_ready(&self) {
        let known = self.current().listing.as_ref().clone();
        self.publish(known);
    }

    /// Publishes a listing; true if it differs from the current one.
    fn publish(&self, lists: Listing) -> bool {
        self.state.send_if_modified(|listing| {
            if listing.state == SourceState::Ready && is_same_listing(&listing.listing, &lists) {
                return false;
            }
            *listing = ListingState {
                state: SourceState::Ready,
                listing: Arc::new(lists),
                version: listing.version + 1,
            };
            true
        })
    }
}

fn is_same_listing(old: &Listing, new: &Listing) -> bool {
    has_same_definitions(&old.tools, &new.tools)
        && has_same_definitions(&old.prompts, &new.prompts)
        && has_same_definitions(&old.resources, &new.resources)
        && has_same_definitions(&old.templates, &new.templates)
        && has_same_definitions(&old.skills, &new.skills)
        && old.extensions.to_json() == new.extensions.to_json()
        && old.instructions == new.instructions
        && (old.ttl_ms, old.supports_completion, old.supports_subscribe)
            == (new.ttl_ms, new.supports_completion, new.supports_subscribe)
}

fn has_same_definitions(old: &[Definition], new: &[Definition]) -> bool {
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| old.key == new.key && old.members == new.members)
}
