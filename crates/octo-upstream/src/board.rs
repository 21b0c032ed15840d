//! What everybody sees of a server: what it lists, and how it is doing.

use crate::fail::Fail;
use crate::known;
use crate::spec::Connect;
use crate::state::Inner;
use octo_toolkit::{Definition, ListingState, Listing, SourceState};
use std::sync::{Arc, PoisonError};

/// Whom the server has shown what is listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Shown {
    #[default]
    Nothing,
    /// Without a login.
    ToAnybody,
    /// With the login that it wants, if it wants one; or before this start.
    ToSomebody,
}

impl Inner {
    /// Shows what the server listed last, where that is good enough to begin with.
    pub(crate) async fn recall(&self) {
        // Who has no login yet must see what they would log in for.
        let wanted = self.spec.connect == Connect::OnDemand || self.is_per_person();
        let Some(lists) = self.spec.lists.as_ref().filter(|_| wanted) else { return };
        match lists.get(&self.name, &known::mark(&self.spec.link)).await {
            Ok(known) => {
                if let Some(known) = known.and_then(known::read) {
                    self.note(Shown::ToSomebody);
                    self.publish(known);
                }
            }
            Err(error) => {
                tracing::warn!(target: "upstream", server = %self.name, %error, "its last list cannot be read");
            }
        }
    }

    /// Keeps what the server lists now for the next start.
    pub(crate) async fn remember(&self) {
        let Some(lists) = self.spec.lists.as_ref().filter(|_| !self.is_lane) else { return };
        let text = known::write(&self.listing.borrow().listing);
        if let Err(error) = lists.put(&self.name, &known::mark(&self.spec.link), text).await {
            tracing::warn!(target: "upstream", server = %self.name, %error, "its list cannot be kept");
        }
    }

    /// Says that the server cannot be used; what it listed before stays listed.
    pub(crate) fn down(&self, why: &str) {
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
    pub(crate) fn tell(&self, why: &Fail) {
        if !(self.is_bare() && matches!(why, Fail::Login(_))) {
            return self.down(&self.with_last_words(why));
        }
        match self.shown() {
            Shown::Nothing => self.down(&why.to_string()),
            Shown::ToAnybody | Shown::ToSomebody => self.be_ready(),
        }
    }

    /// What a program said last, where the reason alone does not tell it.
    fn with_last_words(&self, why: &Fail) -> String {
        match (why, self.said.last()) {
            (Fail::Timeout(_) | Fail::Garbled(_) | Fail::Rpc(_), Some(last)) => {
                format!("{why}; it said last: {last}")
            }
            _ => why.to_string(),
        }
    }

    /// Says why there is no list. One person's trouble does not take from the others what is listed.
    pub(crate) fn cannot_list(&self, why: &Fail) {
        let board = self.board();
        if self.home.is_none() || !board.is_ready() {
            board.down(&format!("cannot list its tools: {why}"));
        }
    }

    /// Shows what a connection has listed, unless a later one lists as well.
    pub(crate) async fn show(&self, lists: Listing, number: u64) {
        let board = self.board();
        if self.is_bare() && board.shown() == Shown::ToSomebody {
            // Who has logged in may see more than this.
            return board.be_ready();
        }
        board.note(if self.is_bare() { Shown::ToAnybody } else { Shown::ToSomebody });
        if (self.listers.is_last(number) || !board.is_ready()) && board.publish(lists) {
            board.remember().await;
        }
    }

    fn shown(&self) -> Shown {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, shown: Shown) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    /// What was listed before holds again.
    fn be_ready(&self) {
        let known = self.listing.borrow().listing.as_ref().clone();
        self.publish(known);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.listing.borrow().state == SourceState::Ready
    }

    /// Shows new lists; true for news. Lists that say the same as before are no change.
    pub(crate) fn publish(&self, lists: Listing) -> bool {
        self.listing.send_if_modified(|listing| {
            if listing.state == SourceState::Ready && same(&listing.listing, &lists) {
                return false;
            }
            *listing = ListingState { state: SourceState::Ready, listing: Arc::new(lists), version: listing.version + 1 };
            true
        })
    }
}

fn same(old: &Listing, new: &Listing) -> bool {
    same_entries(&old.tools, &new.tools)
        && same_entries(&old.prompts, &new.prompts)
        && same_entries(&old.resources, &new.resources)
        && same_entries(&old.templates, &new.templates)
        && old.instructions == new.instructions
        && (old.ttl_ms, old.completes, old.subscribes) == (new.ttl_ms, new.completes, new.subscribes)
}

fn same_entries(old: &[Definition], new: &[Definition]) -> bool {
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| old.key == new.key && old.members == new.members)
}
