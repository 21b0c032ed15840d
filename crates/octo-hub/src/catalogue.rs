//! The catalogue: the items of all sources, updated as sources change.

pub(crate) mod absent_servers;
pub(crate) mod header_params;
pub(crate) mod item;
pub(crate) mod profile;
pub(crate) mod profile_view;
pub(crate) mod tool_override;
pub(crate) mod uri_spellings;

use crate::catalogue::item::Item;
use crate::catalogue::profile::Profile;
use crate::catalogue::profile_view::{SourceSnapshot, View};
use arc_swap::ArcSwap;
use octo_model::{ItemKind, RemedyText};
use octo_toolkit::{Audience, Definition, Event, Listing, Source, SourceState};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast, watch};

/// A change that clients are notified of.
#[derive(Debug, Clone)]
pub enum Change {
    List(ItemKind),
    Resource {
        uri: String,
    },
    /// A warning for people.
    Warning {
        audience: Audience,
        text: String,
    },
}

/// Maximum delay of lists by a slow upstream. Its items follow with a change notification.
const STARTUP_LISTING_TIMEOUT: Duration = Duration::from_millis(1_500);

pub struct Catalogue {
    /// In list order. Sources are added and removed while the hub runs.
    sources: ArcSwap<Vec<Arc<dyn Source>>>,
    profiles: ArcSwap<Vec<Profile>>,
    snapshots: Mutex<Vec<SourceSnapshot>>,
    /// Signals that views must be rebuilt.
    rebuild_needed: Arc<Notify>,
    views: ArcSwap<HashMap<String, Arc<View>>>,
    changes: broadcast::Sender<Change>,
    rebuilt: watch::Sender<u64>,
    started_at: Instant,
    remedy_text: RemedyText,
}

impl Catalogue {
    pub fn new(
        mut sources: Vec<Arc<dyn Source>>,
        profiles: Vec<Profile>,
        remedy_text: RemedyText,
    ) -> Arc<Self> {
        sort_sources(&mut sources);
        let catalogue = Arc::new(Self {
            sources: ArcSwap::from_pointee(sources),
            profiles: ArcSwap::from_pointee(with_full_profile(profiles)),
            snapshots: Mutex::default(),
            rebuild_needed: Arc::default(),
            views: ArcSwap::default(),
            changes: broadcast::channel(256).0,
            rebuilt: watch::channel(0).0,
            started_at: Instant::now(),
            remedy_text,
        });
        catalogue.rebuild();
        catalogue
    }

    /// Watches the sources until the catalogue is dropped. Needs a runtime.
    pub fn watch_sources(self: &Arc<Self>) {
        for source in self.sources.load().iter() {
            self.watch_source(source);
        }
        let (catalogue, dirty) = (Arc::downgrade(self), Arc::clone(&self.rebuild_needed));
        tokio::spawn(async move {
            loop {
                let Some(strong) = catalogue.upgrade() else { return };
                strong.rebuild();
                drop(strong);
                dirty.notified().await;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
    }

    /// The spawned task ends when the source is dropped.
    fn watch_source(&self, source: &Arc<dyn Source>) {
        let (mut listing, dirty) = (source.listing(), Arc::clone(&self.rebuild_needed));
        tokio::spawn(async move {
            while listing.changed().await.is_ok() {
                dirty.notify_one();
            }
        });
        if let Some(events) = source.events() {
            tokio::spawn(forward_events(events, self.changes.clone(), self.remedy_text));
        }
    }

    /// Adds a source, replacing one with the same name and kind. Calls in progress finish on the old source.
    /// Needs a runtime.
    pub fn put(&self, source: Arc<dyn Source>) {
        self.watch_source(&source);
        self.update_sources(|sources| {
            sources.retain(|other| (other.is_native(), other.name()) != (source.is_native(), source.name()));
            sources.push(Arc::clone(&source));
            sort_sources(sources);
        });
    }

    /// Removes a server; returns false if there is none with this name.
    pub fn remove(&self, name: &str) -> bool {
        let was_there = self.sources.load().iter().any(|source| is_server(source, name));
        self.update_sources(|sources| sources.retain(|source| !is_server(source, name)));
        was_there
    }

    fn update_sources(&self, change: impl Fn(&mut Vec<Arc<dyn Source>>)) {
        self.sources.rcu(|sources| {
            let mut sources = Vec::clone(sources);
            change(&mut sources);
            sources
        });
        self.rebuild();
    }

    /// Replaces the profiles.
    pub fn set_profiles(&self, profiles: Vec<Profile>) {
        self.profiles.store(Arc::new(with_full_profile(profiles)));
        self.rebuild();
    }

    /// Notifies clients that lists may have changed although the sources have not.
    pub fn announce_lists(&self) {
        for kind in ItemKind::ALL {
            let _ = self.changes.send(Change::List(kind));
        }
    }

    fn rebuild(&self) {
        let mut stocks = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let before: HashMap<_, _> =
            stocks.iter().map(|old| ((old.is_native, old.name.as_str()), old)).collect();
        let fresh: Vec<SourceSnapshot> = self
            .sources
            .load()
            .iter()
            .map(|source| take_snapshot(source, before.get(&(source.is_native(), source.name())).copied()))
            .collect();
        *stocks = fresh;
        let version = *self.rebuilt.borrow() + 1;
        let views: HashMap<String, Arc<View>> = self
            .profiles
            .load()
            .iter()
            .map(|profile| (profile.name.clone(), Arc::new(View::new(version, profile.clone(), &stocks))))
            .collect();
        let before = self.views.swap(Arc::new(views));
        drop(stocks);
        self.announce_changes(&before);
        self.rebuilt.send_replace(version);
    }

    /// Announces only the lists that changed.
    fn announce_changes(&self, before: &HashMap<String, Arc<View>>) {
        let now = self.views.load();
        for kind in ItemKind::ALL {
            let changed = now.iter().any(|(name, view)| {
                before.get(name).is_some_and(|old| old.rendered(kind) != view.rendered(kind))
            });
            if changed {
                let _ = self.changes.send(Change::List(kind));
            }
        }
    }

    pub fn view(&self, profile: &str) -> Option<Arc<View>> {
        self.views.load().get(profile).cloned()
    }

    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Waits until no source of the profile is on its first listing, or until the timeout.
    pub async fn wait_until_listed(&self, profile: &str, at_most: Duration) {
        let mut rebuilt = self.rebuilt.subscribe();
        let settled = async {
            while self.view(profile).is_some_and(|view| view.is_starting) && rebuilt.changed().await.is_ok() {
            }
        };
        let _ = tokio::time::timeout(at_most, settled).await;
    }

    /// What remains of the time that lists wait for sources after startup. Counted from the start, so that a
    /// hanging server causes no delay later.
    pub fn startup_wait_left(&self) -> Duration {
        STARTUP_LISTING_TIMEOUT.saturating_sub(self.started_at.elapsed())
    }

    /// All sources with their current state, for `octoprox tools --all` and the admin API.
    pub fn source_states(&self) -> Vec<(String, bool, SourceState, Arc<Listing>)> {
        let state = |source: &Arc<dyn Source>| {
            let listing = source.listing().borrow().clone();
            (source.name().to_owned(), source.is_native(), listing.state, listing.listing)
        };
        self.sources.load().iter().map(state).collect()
    }
}

fn with_full_profile(profiles: Vec<Profile>) -> Vec<Profile> {
    [Profile::everything()].into_iter().chain(profiles).collect()
}

/// A toolbox may have the same name; it does not match.
fn is_server(source: &Arc<dyn Source>, name: &str) -> bool {
    !source.is_native() && source.name() == name
}

/// Native sources first, then upstreams by name, so that the order is deterministic.
fn sort_sources(sources: &mut [Arc<dyn Source>]) {
    sources.sort_by(|a, b| (!a.is_native(), a.name()).cmp(&(!b.is_native(), b.name())));
}

async fn forward_events(
    mut events: broadcast::Receiver<Event>,
    changes: broadcast::Sender<Change>,
    remedy_text: RemedyText,
) {
    loop {
        let change = match events.recv().await {
            Ok(Event::ResourceUpdated { uri }) => Change::Resource { uri },
            Ok(Event::Warning { audience, text, remedy }) => {
                Change::Warning { audience, text: format!("{text} {}", remedy_text(&remedy)) }
            }
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let _ = changes.send(change);
    }
}

/// The source's items. Items of an unchanged listing are reused with their compiled schemas.
fn take_snapshot(source: &Arc<dyn Source>, before: Option<&SourceSnapshot>) -> SourceSnapshot {
    let listing = source.listing().borrow().clone();
    let items = match before.filter(|old| Arc::ptr_eq(&old.listing.listing, &listing.listing)) {
        Some(old) => Arc::clone(&old.items),
        None => Arc::new(build_items(source, &listing.listing)),
    };
    SourceSnapshot {
        listing,
        items,
        source: Arc::clone(source),
        name: source.name().to_owned(),
        is_native: source.is_native(),
    }
}

fn build_items(source: &Arc<dyn Source>, lists: &Listing) -> Vec<Arc<Item>> {
    let of = |kind: ItemKind, definitions: &[Definition]| {
        definitions.iter().map(|definition| Arc::new(Item::new(source, kind, definition))).collect::<Vec<_>>()
    };
    [
        of(ItemKind::Tool, &lists.tools),
        of(ItemKind::Prompt, &lists.prompts),
        of(ItemKind::Resource, &lists.resources),
        of(ItemKind::Template, &lists.templates),
    ]
    .concat()
}
