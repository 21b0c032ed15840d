//! Files of the operator that are watched for changes, and the listing that follows them.

use crate::yaml_files::Problem;
use arc_swap::ArcSwap;
use octo_grants::config_dirs::{ConfigDirs, ConfigFile, WatchHandle};
use octo_toolkit::{Listing, ListingState, SourceState};
use std::sync::Arc;
use tokio::sync::watch;

/// Contents of the files in some directories.
pub(crate) trait FileContents: Send + Sync + 'static {
    fn lists(&self) -> Listing;
    fn problems(&self) -> &[Problem];
}

/// Contents that follow their directories, and the listing that follows the contents.
pub(crate) struct WatchedFiles<S> {
    state: Arc<WatchedState<S>>,
    _following: WatchHandle,
}

struct WatchedState<S> {
    contents: ArcSwap<S>,
    listing: watch::Sender<ListingState>,
}

impl<S: FileContents> WatchedFiles<S> {
    /// Reads immediately, so that the first list is complete. Needs a runtime.
    pub fn new(
        folders: ConfigDirs,
        state: SourceState,
        make: impl Fn(&[ConfigFile], Option<&S>) -> S + Send + 'static,
    ) -> Self {
        let leaves = folders.read();
        let stock = make(&leaves, None);
        log_problems(stock.problems(), &[]);
        let listing = ListingState { state, listing: Arc::new(stock.lists()), version: 1 };
        let kept = Arc::new(WatchedState {
            contents: ArcSwap::from_pointee(stock),
            listing: watch::channel(listing).0,
        });
        let keeper = Arc::clone(&kept);
        let following = folders.watch(leaves, move |leaves| {
            let before = keeper.contents.load_full();
            let stock = make(&leaves, Some(&before));
            log_problems(stock.problems(), before.problems());
            let lists = Arc::new(stock.lists());
            keeper.contents.store(Arc::new(stock));
            keeper.listing.send_modify(|listing| {
                listing.listing = lists;
                listing.version += 1;
            });
        });
        Self { state: kept, _following: following }
    }

    pub fn contents(&self) -> Arc<S> {
        self.state.contents.load_full()
    }

    pub fn listing(&self) -> watch::Receiver<ListingState> {
        self.state.listing.subscribe()
    }
}

/// Logs each problem once.
fn log_problems(now: &[Problem], before: &[Problem]) {
    for problem in now.iter().filter(|problem| !before.contains(problem)) {
        tracing::warn!("{problem}");
    }
    if now.is_empty() && !before.is_empty() {
        tracing::info!("all files are valid again");
    }
}
