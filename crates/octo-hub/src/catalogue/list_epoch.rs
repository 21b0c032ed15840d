//! Epochs: within one, the lists of a client do not change, except that items are appended. Models are billed again for a
//! conversation whose tools change, so a server that fails, restarts or changes must not change them.

use crate::apps::open_apps::OpenApps;
use crate::catalogue::item::Entry;
use crate::catalogue::profile_view::View;
use crate::catalogue::rendered_list::RenderedList;
use crate::catalogue::surface::Surface;
use crate::catalogue::surface_choice::{SurfaceChoice, SurfaceReason};
use arc_swap::ArcSwap;
use octo_model::{ItemKind, Principal};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Items that are appended within an epoch to those of each source. A server that makes up new names would
/// otherwise fill the memory of the hub and the context of the model; the rest is listed in the next epoch.
const MAX_APPENDED_ITEMS: usize = 500;

/// Callers whose surface is remembered in an epoch.
const MAX_SURFACES: usize = 10_000;

/// The views of all profiles. Loaded under the lock of the epochs, so that no epoch begins with an outdated one.
pub type Views = ArcSwap<HashMap<String, Arc<View>>>;

/// The lists of a profile, as the clients of one epoch see them.
pub struct ListEpoch {
    profile: String,
    /// Number of deliberate changes before it.
    generation: u64,
    lists: Mutex<HashMap<ItemKind, Arc<RenderedList>>>,
    /// Items that were appended to those of each source.
    appended: Mutex<HashMap<String, usize>>,
    /// Version of the last view that had the same items.
    current_at: AtomicU64,
    /// What `auto` chose for each caller at the first list. What is appended does not change it.
    surfaces: Mutex<HashMap<Principal, SurfaceChoice>>,
}

/// The epoch of one client, which begins with its first list.
#[derive(Clone, Default)]
pub struct ClientEpoch(Arc<ClientEpochState>);

#[derive(Default)]
struct ClientEpochState {
    lists: Mutex<Option<Arc<ListEpoch>>>,
    /// By the surface that was requested: some clients share an epoch.
    instructions: Mutex<HashMap<Option<Surface>, String>>,
    apps: OpenApps,
}

impl ClientEpoch {
    /// Returns the instructions that the client got first, once all servers were known.
    pub(crate) fn instructions(
        &self,
        view: &View,
        requested: Option<Surface>,
        of_hub: impl FnOnce() -> String,
    ) -> String {
        let mut known = self.0.instructions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&requested) {
            return known.clone();
        }
        let instructions = view.instructions.clone().unwrap_or_else(of_hub);
        if !view.is_starting {
            known.insert(requested, instructions.clone());
        }
        instructions
    }

    /// Servers whose apps the client has opened.
    pub(crate) fn apps(&self) -> &OpenApps {
        &self.0.apps
    }

    /// Returns the lists of the client, if it has listed anything.
    pub(crate) fn current(&self) -> Option<Arc<ListEpoch>> {
        self.0.lists.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Epochs of all profiles.
#[derive(Default)]
pub struct ListEpochs(Mutex<EpochState>);

#[derive(Default)]
struct EpochState {
    generation: u64,
    /// Epochs of this generation. New clients join one that has nothing but the present items.
    epochs: Vec<Weak<ListEpoch>>,
    /// Of each profile with clients, one that lasts: clients that have listed elsewhere are notified of additions to it.
    baselines: HashMap<String, Arc<ListEpoch>>,
    statistics: ListChanges,
}

/// How often lists have changed for clients, and what that cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListChanges {
    /// Changes that clients were notified of.
    pub announced: u64,
    /// Bytes of the lists of tools after those changes, which a model reads again.
    pub announced_bytes: u64,
    /// Changes of upstream lists that clients did not see.
    pub withheld: u64,
}

impl ListEpoch {
    fn new(generation: u64, view: &View) -> Self {
        let lists = ItemKind::ALL.into_iter().map(|kind| (kind, Arc::clone(view.rendered_list(kind))));
        Self {
            profile: view.profile.name.clone(),
            generation,
            lists: Mutex::new(lists.collect()),
            appended: Mutex::default(),
            current_at: AtomicU64::new(view.version),
            surfaces: Mutex::default(),
        }
    }

    fn lists(&self) -> MutexGuard<'_, HashMap<ItemKind, Arc<RenderedList>>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn list(&self, kind: ItemKind) -> Arc<RenderedList> {
        self.lists().get(&kind).cloned().unwrap_or_default()
    }

    /// What `auto` chooses for the clients of a caller in this epoch.
    pub fn automatic_surface(
        &self,
        view: &View,
        who: &Principal,
        shows: impl Fn(&Entry) -> bool,
    ) -> SurfaceChoice {
        if let Some(known) = self.surfaces().get(who) {
            return known.clone();
        }
        let list = self.list(ItemKind::Tool);
        let choice = SurfaceChoice::automatic(&view.profile, &list, view.is_starting, shows);
        let mut surfaces = self.surfaces();
        if surfaces.len() >= MAX_SURFACES {
            return choice;
        }
        surfaces.entry(who.clone()).or_insert(choice).clone()
    }

    fn surfaces(&self) -> MutexGuard<'_, HashMap<Principal, SurfaceChoice>> {
        self.surfaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a surface was chosen before all sources had listed their tools, which they have now.
    fn was_chosen_early(&self, view: &View) -> bool {
        !view.is_starting && self.surfaces().values().any(|choice| choice.reason == SurfaceReason::Starting)
    }

    /// Kinds of lists that differ from the view.
    fn outdated(&self, view: &View) -> Vec<ItemKind> {
        let lists = self.lists();
        let is_outdated = |kind: &ItemKind| {
            let live = view.rendered_list(*kind);
            lists.get(kind).is_none_or(|list| !Arc::ptr_eq(list, live) && !list.has_same_items(live))
        };
        ItemKind::ALL.into_iter().filter(is_outdated).collect()
    }

    fn is_current(&self, view: &View) -> bool {
        if self.current_at.load(Ordering::Relaxed) == view.version {
            return true;
        }
        let is_current = self.outdated(view).is_empty();
        if is_current {
            self.current_at.store(view.version, Ordering::Relaxed);
        }
        is_current
    }

    /// Items of a source that may still be appended.
    fn room(&self, source: &str) -> usize {
        let appended = self.appended.lock().unwrap_or_else(PoisonError::into_inner);
        MAX_APPENDED_ITEMS.saturating_sub(appended.get(source).copied().unwrap_or_default())
    }

    /// Whether the view has items that can be appended.
    fn lacks_items_of(&self, view: &View) -> bool {
        let lists = self.lists();
        ItemKind::ALL.into_iter().any(|kind| {
            let live = view.rendered_list(kind);
            lists.get(&kind).is_none_or(|list| {
                !Arc::ptr_eq(list, live) && list.lacks_items_of(live, |source| self.room(source))
            })
        })
    }

    /// Appends what the view has in addition. Returns the kinds of lists that changed.
    fn append(&self, view: &View) -> Vec<ItemKind> {
        let mut lists = self.lists();
        let mut changed = Vec::new();
        for kind in ItemKind::ALL {
            let live = view.rendered_list(kind);
            let list = lists.entry(kind).or_default();
            let room = |source: &str| self.room(source);
            if !Arc::ptr_eq(list, live) && list.lacks_items_of(live, room) {
                let (longer, of_known) = list.with_additions(live, room);
                let mut appended = self.appended.lock().unwrap_or_else(PoisonError::into_inner);
                of_known.into_iter().for_each(|(source, count)| {
                    *appended.entry(source.to_owned()).or_default() += count;
                });
                *list = Arc::new(longer);
                changed.push(kind);
            }
        }
        changed
    }
}

impl EpochState {
    fn begin(&mut self, view: &View) -> Arc<ListEpoch> {
        let epoch = Arc::new(ListEpoch::new(self.generation, view));
        self.epochs.retain(|epoch| epoch.strong_count() > 0);
        self.epochs.push(Arc::downgrade(&epoch));
        epoch
    }

    fn live(&self) -> impl Iterator<Item = Arc<ListEpoch>> {
        self.epochs.iter().filter_map(Weak::upgrade)
    }
}

impl ListEpochs {
    fn lock(&self) -> MutexGuard<'_, EpochState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the epoch of a client: its own while it lasts, otherwise one with the present items. `None` without such a
    /// profile.
    pub fn of_client(&self, client: &ClientEpoch, profile: &str, views: &Views) -> Option<Arc<ListEpoch>> {
        let mut state = self.lock();
        let view = views.load().get(profile).cloned()?;
        let mut own = client.0.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let is_valid = |epoch: &ListEpoch| epoch.generation == state.generation && epoch.profile == profile;
        if let Some(epoch) = own.as_ref().filter(|epoch| is_valid(epoch)) {
            return Some(Arc::clone(epoch));
        }
        let is_joinable = |epoch: &ListEpoch| epoch.is_current(&view) && !epoch.was_chosen_early(&view);
        let present = state.live().find(|epoch| is_valid(epoch) && is_joinable(epoch));
        let epoch = present.unwrap_or_else(|| state.begin(&view));
        *own = Some(Arc::clone(&epoch));
        state.baselines.entry(profile.to_owned()).or_insert_with(|| Arc::clone(&epoch));
        Some(epoch)
    }

    /// Notifies clients of additions from now on, also those that do not list here.
    pub fn watch(&self, profile: &str, views: &Views) {
        let mut state = self.lock();
        let Some(view) = views.load().get(profile).cloned() else { return };
        if !state.baselines.contains_key(profile) {
            let epoch = state.begin(&view);
            state.baselines.insert(profile.to_owned(), epoch);
        }
    }

    /// Ends all epochs because somebody has changed something deliberately. Returns the kinds of lists that change for
    /// clients by that.
    pub fn end_all(&self, views: &Views) -> Vec<ItemKind> {
        let mut state = self.lock();
        let views = views.load();
        let mut changed = BTreeSet::new();
        for epoch in state.live() {
            match views.get(&epoch.profile) {
                Some(view) => changed.extend(epoch.outdated(view)),
                None => changed.extend(ItemKind::ALL),
            }
            // Its clients list again; until then it would keep removed sources alive.
            epoch.lists().clear();
        }
        state.epochs.clear();
        state.generation += 1;
        for profile in std::mem::take(&mut state.baselines).into_keys() {
            if let Some(view) = views.get(&profile) {
                let epoch = state.begin(view);
                state.baselines.insert(profile, epoch);
            }
        }
        changed.into_iter().collect()
    }

    /// Whether the views have items that clients do not have yet.
    pub fn has_additions(&self, views: &Views) -> bool {
        let state = self.lock();
        let views = views.load();
        let mut epochs = state.live();
        epochs.any(|epoch| views.get(&epoch.profile).is_some_and(|view| epoch.lacks_items_of(view)))
    }

    /// Appends new items to all epochs. Returns the kinds of lists that changed.
    pub fn append(&self, views: &Views) -> Vec<ItemKind> {
        let state = self.lock();
        let views = views.load();
        let appended =
            state.live().filter_map(|epoch| Some(epoch.append(views.get(&epoch.profile)?))).flatten();
        let changed: BTreeSet<ItemKind> = appended.collect();
        changed.into_iter().collect()
    }

    /// Counts a change that clients were notified of.
    pub fn count_announced(&self, views: &Views) {
        let tools = views.load().get("").map_or(0, |view| view.rendered_list(ItemKind::Tool).bytes());
        let mut state = self.lock();
        state.statistics.announced += 1;
        state.statistics.announced_bytes += tools as u64;
    }

    /// Counts a change that clients do not see in their epoch, if there are any.
    pub fn count_withheld(&self, views: &Views) {
        let mut state = self.lock();
        let views = views.load();
        let is_outdated =
            |epoch: Arc<ListEpoch>| views.get(&epoch.profile).is_some_and(|view| !epoch.is_current(view));
        if state.live().any(is_outdated) {
            state.statistics.withheld += 1;
        }
    }

    pub fn statistics(&self) -> ListChanges {
        self.lock().statistics
    }
}
