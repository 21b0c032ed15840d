//! What everybody sees of a server: what it lists, and how it is doing.

use crate::error::UpstreamError;
use crate::link::Link;
use crate::listing_codec;
use crate::upstream_spec::ConnectMode;
use octo_toolkit::{Definition, Listing, ListingState, SourceState};
use std::sync::{Arc, PoisonError};

/// Whom the server has shown what is listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ListingAccess {
    #[default]
    NotListed,
    /// Without a login.
    Anonymous,
    /// With the login that it wants, if it wants one; or before this start.
    LoggedIn,
}

impl Link {
    /// Shows what the server listed last, where that is good enough to begin with.
    pub(crate) async fn restore_cached_listing(&self) {
        // Who has no login yet must see what they would log in for.
        let wanted = self.spec.connect == ConnectMode::OnDemand || self.has_personal_logins();
        let Some(lists) = self.spec.listing_cache.as_ref().filter(|_| wanted) else { return };
        match lists.get(&self.name, &listing_codec::config_fingerprint(&self.spec.transport)).await {
            Ok(known) => {
                if let Some(known) = known.and_then(listing_codec::decode) {
                    self.set_listing_access(ListingAccess::LoggedIn);
                    self.publish(known);
                }
            }
            Err(error) => {
                tracing::warn!(target: "upstream", server = %self.name, %error, "its last list cannot be read");
            }
        }
    }

    /// Keeps what the server lists now for the next start.
    pub(crate) async fn cache_listing(&self) {
        let Some(lists) = self.spec.listing_cache.as_ref().filter(|_| !self.is_extra) else { return };
        let text = listing_codec::encode(&self.listing.borrow().listing);
        if let Err(error) =
            lists.put(&self.name, &listing_codec::config_fingerprint(&self.spec.transport), text).await
        {
            tracing::warn!(target: "upstream", server = %self.name, %error, "its list cannot be kept");
        }
    }

    /// Says that the server cannot be used; what it listed before stays listed.
    pub(crate) fn mark_down(&self, why: &str) {
        let state = SourceState::Down(why.to_owned());
        let news = self.listing.send_if_modified(|listing| {
            let changed = listing.state != state;
            if changed {
                listing.state = state;
                listing.version += 1;
            }
            changed
        });
        if news && !self.stop.is_cancelled() {
            tracing::warn!(target: "upstream", server = %self.name, why, "down");
        }
    }

    /// Says why a try came to nothing. A server that wants a person's login is there, and its lists are what they were.
    pub(crate) fn report_failure(&self, why: &UpstreamError) {
        if !(self.is_anonymous() && matches!(why, UpstreamError::Unauthorized(_))) {
            return self.mark_down(&self.with_stderr_excerpt(why));
        }
        match self.listing_access() {
            ListingAccess::NotListed => self.mark_down(&why.to_string()),
            ListingAccess::Anonymous | ListingAccess::LoggedIn => self.mark_ready(),
        }
    }

    /// What a program said last, where the reason alone does not tell it.
    fn with_stderr_excerpt(&self, why: &UpstreamError) -> String {
        match (why, self.stderr.excerpt()) {
            (UpstreamError::Timeout(_) | UpstreamError::Protocol(_) | UpstreamError::Rpc(_), Some(last)) => {
                format!("{why}; it said last: {last}")
            }
            _ => why.to_string(),
        }
    }

    /// Says why there is no list. One person's trouble does not take from the others what is listed.
    pub(crate) fn report_listing_failure(&self, why: &UpstreamError) {
        let board = self.listing_owner();
        if self.listing_link.is_none() || !board.is_ready() {
            board.mark_down(&format!("cannot list its tools: {why}"));
        }
    }

    /// Shows what a connection has listed, unless a later one lists as well.
    pub(crate) async fn publish_from(&self, lists: Listing, number: u64) {
        let board = self.listing_owner();
        if self.is_anonymous() && board.listing_access() == ListingAccess::LoggedIn {
            // Who has logged in may see more than this.
            return board.mark_ready();
        }
        board.set_listing_access(if self.is_anonymous() {
            ListingAccess::Anonymous
        } else {
            ListingAccess::LoggedIn
        });
        if (self.election.is_leader(number) || !board.is_ready()) && board.publish(lists) {
            board.cache_listing().await;
        }
    }

    fn listing_access(&self) -> ListingAccess {
        *self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_listing_access(&self, shown: ListingAccess) {
        *self.access.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    /// What was listed before holds again.
    fn mark_ready(&self) {
        let known = self.listing.borrow().listing.as_ref().clone();
        self.publish(known);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.listing.borrow().state == SourceState::Ready
    }

    /// Shows new lists; true for news. Lists that say the same as before are no change.
    pub(crate) fn publish(&self, lists: Listing) -> bool {
        self.listing.send_if_modified(|listing| {
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
        && old.instructions == new.instructions
        && (old.ttl_ms, old.supports_completion, old.supports_subscribe)
            == (new.ttl_ms, new.supports_completion, new.supports_subscribe)
}

fn has_same_definitions(old: &[Definition], new: &[Definition]) -> bool {
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| old.key == new.key && old.members == new.members)
}
