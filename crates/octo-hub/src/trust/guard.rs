//! A source whose listing is judged before anybody sees it, and whose results are cleaned.

use super::judge::{Verdict, judge};
use super::peer::Washed;
use super::{Book, Difference, HeldCalls, TrustSettings, wash, worst};
use crate::ports::{PinWrite, Pin, PinSet, ItemKind, ServerIdentity};
use octo_model::{JsonObject, Method, Operation, ToolError};
use octo_toolkit::{BoxFuture, CallContext, Event, ListingState, Listing, Peer, Source, SourceState};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// While something is held, a decision of a person takes effect within this time.
const LOOK: Duration = Duration::from_secs(2);
/// The pause before pins that could not be read or written are tried again.
const AGAIN: Duration = Duration::from_secs(3);
/// So often other processes may be quicker.
const TRIES: usize = 20;

/// Guards the servers of one hub.
pub struct Trust {
    pins: Book,
    /// The names of all servers in the settings.
    servers: Vec<String>,
}

impl Trust {
    pub fn new(pins: Book, servers: impl IntoIterator<Item = String>) -> Self {
        Self { pins, servers: servers.into_iter().collect() }
    }

    /// The source as it may be shown. `identity` tells what is behind its name, see [`super::identity`]. Needs a runtime.
    pub fn guard(
        &self,
        source: Arc<dyn Source>,
        identity: String,
        settings: impl Into<TrustSettings>,
    ) -> Arc<dyn Source> {
        let server = source.name().to_owned();
        let others = self.servers.iter().filter(|name| **name != server).cloned().collect();
        let before = source.listing();
        let listing = ListingState { state: SourceState::Starting, listing: Arc::default(), version: 0 };
        let guard = Arc::new(Guard {
            source,
            whose: ServerIdentity { server, identity, others },
            settings: settings.into(),
            pins: Arc::clone(&self.pins),
            listing: watch::Sender::new(listing),
            judged: Mutex::default(),
        });
        tokio::spawn(follow(Arc::downgrade(&guard), before));
        guard
    }
}

struct Guard {
    source: Arc<dyn Source>,
    whose: ServerIdentity,
    settings: TrustSettings,
    pins: Book,
    listing: watch::Sender<ListingState>,
    judged: Mutex<Option<Judged>>,
}

/// What the present listing of the source has led to.
#[derive(Clone)]
struct Judged {
    lists: Arc<Listing>,
    verdict: Arc<Verdict>,
    shown: Arc<Listing>,
    revision: u64,
}

/// Judges every listing, one after the other.
async fn follow(guard: Weak<Guard>, mut listing: watch::Receiver<ListingState>) {
    loop {
        let now = listing.borrow_and_update().clone();
        let Some(strong) = guard.upgrade() else { return };
        let pause = strong.take(now).await;
        drop(strong);
        let changed = match pause {
            None => Ok(listing.changed().await),
            Some(pause) => tokio::time::timeout(pause, listing.changed()).await,
        };
        if matches!(changed, Ok(Err(_))) {
            return;
        }
    }
}

impl Guard {
    /// Shows what a listing has led to; gives the time after which it is to be looked at again.
    async fn take(&self, now: ListingState) -> Option<Duration> {
        if now.state == SourceState::Starting && is_empty(&now.listing) {
            self.show(now.state, Arc::default());
            return None;
        }
        let judged = match self.judged(&now.listing).await {
            Ok(judged) => judged,
            Err(error) => {
                tracing::error!(target: "trust", server = %self.whose.server, %error, detail = error.detail, "definitions cannot be checked");
                let before = self.listing.borrow().listing.clone();
                self.show(SourceState::Down("its definitions cannot be checked".to_owned()), before);
                return Some(AGAIN);
            }
        };
        let pause = (!judged.verdict.held.is_empty()).then_some(LOOK);
        self.show(now.state, Arc::clone(&judged.shown));
        *self.judged.lock().unwrap_or_else(PoisonError::into_inner) = Some(judged);
        pause
    }

    async fn judged(&self, lists: &Arc<Listing>) -> Result<Judged, ToolError> {
        let before = self.judged.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(before) = before.filter(|before| Arc::ptr_eq(&before.lists, lists)) {
            let decided = !before.verdict.held.is_empty()
                && self.pins.revision(&self.whose.server).await? != before.revision;
            if !decided {
                return Ok(before);
            }
        }
        for _ in 0..TRIES {
            let pinned = self.pins.load(&self.whose).await?;
            let revision = pinned.revision;
            let verdict = self.judge(lists, pinned).await?;
            let noted = self.pins.keep(&self.whose, verdict.news.clone()).await?;
            if let PinWrite::Kept(fresh) = noted {
                self.report(&verdict, &fresh);
                let shown = Arc::new(verdict.lists.clone());
                return Ok(Judged { lists: Arc::clone(lists), verdict: Arc::new(verdict), shown, revision });
            }
        }
        Err(ToolError::unavailable("The pins of this server change all the time."))
    }

    /// Thousands of texts take a while, which no call should wait for.
    async fn judge(&self, lists: &Arc<Listing>, pinned: PinSet) -> Result<Verdict, ToolError> {
        let (lists, whose, settings) = (Arc::clone(lists), self.whose.clone(), self.settings);
        let judged = tokio::task::spawn_blocking(move || judge(&lists, &pinned, &whose, settings));
        judged.await.map_err(ToolError::internal)
    }

    fn show(&self, state: SourceState, lists: Arc<Listing>) {
        self.listing.send_if_modified(|listing| {
            let same = listing.state == state && Arc::ptr_eq(&listing.listing, &lists);
            if !same {
                *listing = ListingState { state, listing: lists, version: listing.version + 1 };
            }
            !same
        });
    }

    /// Every definition is reported once, however often a server goes back and forth.
    fn report(&self, verdict: &Verdict, fresh: &[Pin]) {
        for pin in fresh {
            let place = (pin.what, pin.key.clone());
            let why = |found: &HashMap<(ItemKind, String), Vec<Difference>>| {
                let found = found.get(&place)?;
                let first = found.first().map(|one| format!("{} {}", one.at, one.what)).unwrap_or_default();
                Some((worst(found).as_str(), octo_toolkit::hidden::cleaned(first, &mut 0)))
            };
            let name = octo_toolkit::hidden::cleaned(pin.key.clone(), &mut 0);
            let (server, what) = (&self.whose.server, pin.what.as_str());
            if let Some((severity, why)) = why(&verdict.held) {
                tracing::warn!(target: "trust", %server, what, name, severity, why, "held back; `octoprox servers diff {server}` shows it");
            } else if let Some((severity, why)) = why(&verdict.told) {
                tracing::warn!(target: "trust", %server, what, name, severity, why, "changed");
            }
        }
    }

    fn refuse(&self, op: &Operation) -> Result<(), ToolError> {
        if self.settings.held_calls == HeldCalls::Pinned {
            return Ok(());
        }
        let what = match op.method {
            Method::CallTool => ItemKind::Tool,
            Method::GetPrompt => ItemKind::Prompt,
            Method::ReadResource | Method::Subscribe | Method::Unsubscribe => ItemKind::Resource,
            Method::Complete => return Ok(()),
        };
        let judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !judged.is_some_and(|judged| judged.verdict.held.contains_key(&(what, op.name.clone()))) {
            return Ok(());
        }
        let (server, word) = (&self.whose.server, what.as_str());
        Err(ToolError::denied(format!(
            "The server `{server}` has changed what this {word} says about itself, and nobody has looked at it yet."
        ))
        .hint(format!("The operator can see and accept the change: octoprox servers diff {server}")))
    }
}

fn is_empty(lists: &Listing) -> bool {
    let lengths = [lists.tools.len(), lists.prompts.len(), lists.resources.len(), lists.templates.len()];
    lengths == [0; 4] && lists.instructions.is_none()
}

impl Source for Guard {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn is_native(&self) -> bool {
        self.source.is_native()
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.listing.subscribe()
    }

    fn run<'a>(
        &'a self,
        op: Operation,
        cx: &'a CallContext,
        peer: &'a Arc<dyn Peer>,
    ) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            self.refuse(&op)?;
            let method = op.method;
            let washed: Arc<dyn Peer> = Arc::new(Washed(Arc::clone(peer)));
            let result = self.source.run(op, cx, &washed).await.map_err(wash::error)?;
            let (result, removed) = wash::result(method, result)?;
            if removed > 0 {
                tracing::warn!(target: "trust", server = %self.whose.server, call = %cx.id, removed, "hidden text was taken out of a reply");
            }
            Ok(result)
        })
    }

    fn events(&self) -> Option<broadcast::Receiver<Event>> {
        self.source.events()
    }

    fn watch<'a>(&'a self, uri: &'a str, on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        self.source.watch(uri, on)
    }
}
