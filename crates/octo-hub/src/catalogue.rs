//! The catalogue: the items of all sources, updated as sources change.

pub(crate) mod absent_servers;
pub(crate) mod client_features;
pub(crate) mod header_params;
pub(crate) mod item;
pub(crate) mod list_epoch;
pub(crate) mod name_patterns;
pub(crate) mod profile;
pub(crate) mod profile_view;
pub(crate) mod rendered_list;
pub(crate) mod scoped_uris;
pub(crate) mod surface;
pub(crate) mod surface_choice;
pub(crate) mod template_pattern;
pub(crate) mod tool_override;
pub(crate) mod uri_spellings;

use crate::catalogue::item::Item;
use crate::catalogue::list_epoch::{ClientEpoch, ListChanges, ListEpoch, ListEpochs, Views};
use crate::catalogue::profile::Profile;
use crate::catalogue::profile_view::{SourceSnapshot, View};
use arc_swap::ArcSwap;
use octo_model::{Effect, EffectOrigin, ItemKind, RemedyText};
use octo_toolkit::{Audience, Definition, Event, Listing, ListingState, Source, SourceState};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast, watch};
use tokio_util::sync::CancellationToken;

/// A change that clients are notified of.
#[derive(Debug, Clone)]
pub enum Change {
    /// A list of clients has changed.
    List(ItemKind),
    /// The items of a source have changed, whether or not clients see it in their epoch.
    Items,
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
/// New items are announced once nothing has changed for this long, so that several servers that start cause one change.
const QUIET_INTERVAL: Duration = Duration::from_secs(1);
/// They are announced after this time even if something keeps changing.
const MAX_QUIET_WAIT: Duration = Duration::from_secs(10);

pub struct Catalogue {
    /// In list order. Sources are added and removed while the hub runs.
    sources: ArcSwap<Vec<Arc<dyn Source>>>,
    profiles: ArcSwap<Vec<Profile>>,
    snapshots: Mutex<Vec<SourceSnapshot>>,
    /// Signals that views must be rebuilt.
    rebuild_needed: Arc<Notify>,
    views: Views,
    epochs: ListEpochs,
    /// Signals that there are items which clients do not have yet.
    additions: Arc<Notify>,
    changes: broadcast::Sender<Change>,
    /// Number of announced list changes.
    announcements: AtomicU64,
    rebuilt: watch::Sender<u64>,
    /// Ends the tasks of the catalogue with it: sources may outlive it.
    tasks: CancellationToken,
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
            epochs: ListEpochs::default(),
            additions: Arc::default(),
            changes: broadcast::channel(256).0,
            announcements: AtomicU64::new(0),
            rebuilt: watch::channel(0).0,
            tasks: CancellationToken::new(),
            started_at: Instant::now(),
            remedy_text,
        });
        catalogue.rebuild(Cause::Deliberate);
        catalogue
    }

    /// Watches the sources until the catalogue is dropped. Needs a runtime.
    pub fn watch_sources(self: &Arc<Self>) {
        for source in self.sources.load().iter() {
            self.watch_source(source);
        }
        let (catalogue, dirty) = (Arc::downgrade(self), Arc::clone(&self.rebuild_needed));
        self.spawn(async move {
            loop {
                let Some(strong) = catalogue.upgrade() else { return };
                strong.rebuild(Cause::Source);
                drop(strong);
                dirty.notified().await;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        self.spawn(announce_additions(Arc::downgrade(self)));
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let over = self.tasks.clone();
        tokio::spawn(async move { over.run_until_cancelled(task).await });
    }

    /// The tasks end when the source or the catalogue is dropped.
    fn watch_source(&self, source: &Arc<dyn Source>) {
        let (mut listing, dirty) = (source.listing(), Arc::clone(&self.rebuild_needed));
        self.spawn(async move {
            while listing.changed().await.is_ok() {
                dirty.notify_one();
            }
        });
        if let Some(events) = source.events() {
            self.spawn(forward_events(
                source.name().to_owned(),
                events,
                self.changes.clone(),
                self.remedy_text,
            ));
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
        self.rebuild(Cause::Deliberate);
    }

    /// Replaces the profiles.
    pub fn set_profiles(&self, profiles: Vec<Profile>) {
        self.profiles.store(Arc::new(with_full_profile(profiles)));
        self.rebuild(Cause::Deliberate);
    }

    /// Notifies clients that lists may have changed although the sources have not.
    pub fn announce_lists(&self) {
        self.epochs.end_all(&self.views);
        self.announce(ItemKind::ALL.to_vec());
    }

    fn rebuild(&self, cause: Cause) {
        let mut stocks = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let before: HashMap<_, _> =
            stocks.iter().map(|old| ((old.is_native, old.name.as_str()), old)).collect();
        let fresh: Vec<SourceSnapshot> = self
            .sources
            .load()
            .iter()
            .map(|source| take_snapshot(source, before.get(&(source.is_native(), source.name())).copied()))
            .collect();
        let is_deliberate = cause == Cause::Deliberate
            || fresh.iter().any(|new| {
                let old = before.get(&(new.is_native, new.name.as_str()));
                old.is_some_and(|old| is_deliberate_change(old, new))
            });
        *stocks = fresh;
        let version = *self.rebuilt.borrow() + 1;
        let views: HashMap<String, Arc<View>> = self
            .profiles
            .load()
            .iter()
            .map(|profile| (profile.name.clone(), Arc::new(View::new(version, profile.clone(), &stocks))))
            .collect();
        let before = self.views.swap(Arc::new(views));
        // Under the lock, so that versions rise.
        self.rebuilt.send_replace(version);
        drop(stocks);
        self.announce_changes(&before, is_deliberate);
    }

    /// Announces the lists that somebody changed deliberately. Other changes wait: additions for a quiet moment, the rest
    /// for the next epoch.
    fn announce_changes(&self, before: &HashMap<String, Arc<View>>, is_deliberate: bool) {
        let now = self.views.load();
        let (mut changed, mut passed_through) = (BTreeSet::new(), BTreeSet::new());
        for (name, view) in now.iter() {
            let Some(old) = before.get(name) else { continue };
            let is_changed = |kind: &ItemKind| old.rendered(*kind) != view.rendered(*kind);
            let kinds: Vec<ItemKind> = ItemKind::ALL.into_iter().filter(is_changed).collect();
            changed.extend(&kinds);
            if view.profile.passthrough_source().is_some() {
                passed_through.extend(&kinds);
            }
        }
        if !changed.is_empty() {
            let _ = self.changes.send(Change::Items);
        }
        if is_deliberate {
            // Clients may have other lists than the view before.
            let kinds = self.epochs.end_all(&self.views).into_iter().chain(changed);
            self.announce(kinds.collect::<BTreeSet<_>>().into_iter().collect());
            return;
        }
        self.announce(passed_through.into_iter().collect());
        if changed.is_empty() {
            // Only states have changed.
        } else if self.epochs.has_additions(&self.views) {
            self.additions.notify_one();
        } else {
            self.epochs.count_withheld(&self.views);
        }
    }

    fn announce(&self, kinds: Vec<ItemKind>) {
        if kinds.contains(&ItemKind::Tool) {
            self.epochs.count_announced(&self.views);
        }
        for kind in kinds {
            self.announcements.fetch_add(1, Ordering::AcqRel);
            let _ = self.changes.send(Change::List(kind));
        }
    }

    /// Number of announced list changes, so that a client can tell whether it missed one.
    pub fn announcements(&self) -> u64 {
        self.announcements.load(Ordering::Acquire)
    }

    /// Returns the epoch of a client.
    pub fn epoch(&self, client: &ClientEpoch, profile: &str) -> Option<Arc<ListEpoch>> {
        self.epochs.of_client(client, profile, &self.views)
    }

    /// Notifies clients of additions to a profile from now on.
    pub fn watch_lists(&self, profile: &str) {
        self.epochs.watch(profile, &self.views);
    }

    /// Returns how often the lists have changed.
    pub fn list_changes(&self) -> ListChanges {
        self.epochs.statistics()
    }

    pub fn view(&self, profile: &str) -> Option<Arc<View>> {
        self.views.load().get(profile).cloned()
    }

    /// Counts how often the items of sources were taken.
    pub fn version(&self) -> u64 {
        *self.rebuilt.borrow()
    }

    /// Notifies of new versions.
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.rebuilt.subscribe()
    }

    /// The items of all sources, at this version or a later one.
    pub fn snapshots(&self) -> (u64, Vec<SourceSnapshot>) {
        let snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock: what a rebuild has not counted yet is taken again.
        (self.version(), snapshots.clone())
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

impl Drop for Catalogue {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

/// Why views are rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// A source has changed by itself.
    Source,
    /// Somebody has changed settings.
    Deliberate,
}

/// Whether a person changed what the source lists: files of the hub, or the approval of a definition.
fn is_deliberate_change(old: &SourceSnapshot, new: &SourceSnapshot) -> bool {
    let (before, now) = (&old.listing.listing, &new.listing.listing);
    let is_first = old.is_carried_over && !new.is_carried_over;
    is_first || !Arc::ptr_eq(before, now) && (new.is_native || before.approvals != now.approvals)
}

/// Appends new items to the lists of clients at quiet moments, until the catalogue is dropped.
async fn announce_additions(catalogue: Weak<Catalogue>) {
    let Some(additions) = catalogue.upgrade().map(|catalogue| Arc::clone(&catalogue.additions)) else {
        return;
    };
    loop {
        additions.notified().await;
        let since = Instant::now();
        while since.elapsed() < MAX_QUIET_WAIT
            && tokio::time::timeout(QUIET_INTERVAL, additions.notified()).await.is_ok()
        {}
        let Some(strong) = catalogue.upgrade() else { return };
        let changed = strong.epochs.append(&strong.views);
        strong.announce(changed);
    }
}

fn with_full_profile(profiles: Vec<Profile>) -> Vec<Profile> {
    let is_named = |profile: &Profile| profile.name.is_empty();
    let full = if profiles.iter().any(is_named) { None } else { Some(Profile::everything()) };
    full.into_iter().chain(profiles).collect()
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
    server: String,
    mut events: broadcast::Receiver<Event>,
    changes: broadcast::Sender<Change>,
    remedy_text: RemedyText,
) {
    loop {
        let change = match events.recv().await {
            Ok(Event::ResourceUpdated { uri }) => {
                // Clients know it with the name of the server, unless the source is not reviewed.
                if let Some(uri) = scoped_uris::to_scoped(&server, &uri) {
                    let _ = changes.send(Change::Resource { uri });
                }
                Change::Resource { uri }
            }
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
    let mut listing = source.listing().borrow().clone();
    // A server whose settings have changed keeps its items until it has listed again.
    let is_new = |old: &&SourceSnapshot| old.is_carried_over || !Arc::ptr_eq(&old.source, source);
    let carried_over = before.filter(is_new).filter(|_| is_on_first_listing(&listing));
    if let Some(old) = carried_over {
        listing.listing = Arc::clone(&old.listing.listing);
    }
    let is_same = |old: &&SourceSnapshot| {
        Arc::ptr_eq(&old.source, source) && Arc::ptr_eq(&old.listing.listing, &listing.listing)
    };
    let items = match before.filter(is_same) {
        Some(old) => Arc::clone(&old.items),
        None => Arc::new(build_items(source, &listing.listing, carried_over.is_some())),
    };
    SourceSnapshot {
        is_carried_over: carried_over.is_some(),
        listing,
        items,
        source: Arc::clone(source),
        name: source.name().to_owned(),
        is_native: source.is_native(),
    }
}

fn is_on_first_listing(listing: &ListingState) -> bool {
    let Listing { tools, prompts, resources, templates, skills, .. } = &*listing.listing;
    let lists = [tools, prompts, resources, templates, skills];
    listing.state == SourceState::Starting && lists.iter().all(|list| list.is_empty())
}

/// `is_carried_over`: the listing is of other settings, so its effects are not known to hold.
fn build_items(source: &Arc<dyn Source>, lists: &Listing, is_carried_over: bool) -> Vec<Arc<Item>> {
    let of = |kind: ItemKind, definitions: &[Definition]| {
        let item = |definition: &Definition| {
            let mut item = Item::new(source, kind, definition);
            if is_carried_over && !source.is_native() {
                (item.effect, item.effect_origin) = (Effect::unknown(), EffectOrigin::Assumed);
            }
            Arc::new(item)
        };
        definitions.iter().map(item).collect::<Vec<_>>()
    };
    [
        of(ItemKind::Tool, &lists.tools),
        of(ItemKind::Prompt, &lists.prompts),
        of(ItemKind::Resource, &lists.resources),
        of(ItemKind::Template, &lists.templates),
        of(ItemKind::Skill, &lists.skills),
    ]
    .concat()
}
