//! An API as a source: its listing, its calls, and the task that watches its document.

use crate::document_spec::DocumentSpec;
use crate::loaded_api::LoadedApi;
use crate::{document_watch, operation_call};
use arc_swap::ArcSwapOption;
use octo_model::{JsonObject, Method, Operation, Remedy, ToolError};
use octo_toolkit::{BoxFuture, CallContext, ListingState, Source, SourceState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Maximum wait of a call for the first document.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(15);

/// An API as an upstream. Dropping it stops watching its document.
pub struct Api {
    inner: Arc<ApiState>,
    watcher: Mutex<Option<JoinHandle<()>>>,
}

pub(crate) struct ApiState {
    pub(crate) spec: DocumentSpec,
    pub(crate) listing: watch::Sender<ListingState>,
    pub(crate) loaded: ArcSwapOption<LoadedApi>,
    pub(crate) stop: CancellationToken,
}

/// Returns immediately; loads the document in the background. Needs a tokio runtime.
pub fn start(spec: DocumentSpec) -> Arc<Api> {
    let listing = ListingState { state: SourceState::Starting, listing: Arc::default(), version: 0 };
    let inner = Arc::new(ApiState {
        spec,
        listing: watch::Sender::new(listing),
        loaded: ArcSwapOption::empty(),
        stop: CancellationToken::new(),
    });
    let following = tokio::spawn(document_watch::run(Arc::clone(&inner)));
    Arc::new(Api { inner, watcher: Mutex::new(Some(following)) })
}

impl Api {
    /// Stops watching the document and waits for it. Active calls continue.
    pub async fn stop(&self) {
        self.inner.stop.cancel();
        let following = self.watcher.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(following) = following {
            let _ = following.await;
        }
    }

    /// Whether a document is loaded.
    pub fn is_ready(&self) -> bool {
        self.inner.loaded.load().is_some()
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.inner.stop.cancel();
    }
}

impl Source for Api {
    fn name(&self) -> &str {
        &self.inner.spec.name
    }

    fn is_native(&self) -> bool {
        false
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.inner.listing.subscribe()
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            if op.method != Method::CallTool {
                return Err(ToolError::not_found(format!("{} only has tools.", self.inner.spec.name))
                    .hint("Call one of its tools."));
            }
            let loaded = self.inner.loaded_or_wait(cx).await?;
            operation_call::run(&self.inner.spec, &loaded, &op, cx).await
        })
    }
}

impl ApiState {
    /// Returns the current document; waits if there is none yet.
    async fn loaded_or_wait(&self, cx: &CallContext) -> Result<Arc<LoadedApi>, ToolError> {
        let mut listing = self.listing.subscribe();
        let settled = listing.wait_for(|listing| listing.state != SourceState::Starting);
        let _ = tokio::time::timeout(DOCUMENT_TIMEOUT.min(cx.time_left()), settled).await;
        self.loaded.load_full().ok_or_else(|| {
            let error =
                ToolError::unavailable(format!("The document of {} cannot be loaded.", self.spec.name))
                    .hint("Try again later, or ask the operator to check the server.")
                    .remedy(Remedy::CheckServers)
                    .retry_after(Duration::from_secs(5));
            match &self.listing.borrow().state {
                SourceState::Down(why) => error.detail(why),
                _ => error,
            }
        })
    }

    /// Marks the source as down. The previous listing stays and can be called.
    pub(crate) fn mark_down(&self, why: &str) {
        let state = SourceState::Down(why.to_owned());
        let news = self.listing.send_if_modified(|listing| {
            let changed = listing.state != state;
            if changed {
                *listing =
                    ListingState { state, listing: listing.listing.clone(), version: listing.version + 1 };
            }
            changed
        });
        if news {
            tracing::warn!(target: "upstream", server = %self.spec.name, why, "down");
        }
    }

    pub(crate) fn publish(&self, loaded: LoadedApi) {
        let lists = loaded.lists.clone();
        let count = lists.tools.len();
        self.loaded.store(Some(Arc::new(loaded)));
        self.listing.send_modify(|listing| {
            *listing =
                ListingState { state: SourceState::Ready, listing: lists, version: listing.version + 1 };
        });
        tracing::info!(target: "upstream", server = %self.spec.name, tools = count, "document loaded");
    }
}
