//! Reads the document at the start and whenever it has changed.

use super::fetch::Origin;
use super::loaded::Loaded;
use super::{Document, Inner};
use crate::backoff::Backoff;
use octo_grants::folders::Folders;
use octo_model::ToolError;
use octo_openapi::LARGEST;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Even an eager setting asks no more often.
const SOONEST: Duration = Duration::from_secs(1);

pub(super) async fn run(inner: Arc<Inner>) {
    let stop = inner.stop.clone();
    let following = async {
        match inner.spec.document.clone() {
            Document::File(path) => file(&inner, path).await,
            Document::Url(url) => address(&inner, &url).await,
        }
    };
    tokio::select! {
        () = following => {}
        () = stop.cancelled() => {}
    }
}

async fn file(inner: &Arc<Inner>, path: PathBuf) {
    let mut watched =
        Folders::new(vec![path]).up_to(LARGEST as u64).approved(inner.spec.approve.clone()).watched();
    let mut seen = None;
    while let Some(leaves) = watched.read().await {
        match leaves.into_iter().next().map(|leaf| leaf.content) {
            Some(Ok(text)) => take(inner, text, None, &mut seen).await,
            Some(Err(why)) => inner.down(&format!("its document cannot be read: {why}")),
            None => inner.down("its document is a folder without one"),
        }
        watched.changed().await;
    }
}

async fn address(inner: &Arc<Inner>, url: &str) {
    let mut origin = match Origin::new(&inner.spec, url) {
        Ok(origin) => origin,
        Err(error) => return inner.down(&format!("its document has no usable address: {}", error.message)),
    };
    let mut backoff = Backoff::default();
    let mut seen = None;
    loop {
        let wait = match origin.fetch().await {
            Ok(fetched) => {
                backoff.reset();
                if let Some(fetched) = fetched {
                    take(inner, fetched.text, Some(fetched.url), &mut seen).await;
                }
                inner.spec.refresh
            }
            Err(error) => {
                // The API may well be there although its document is not.
                if inner.loaded.load().is_none() {
                    inner.down(&format!("its document cannot be fetched: {}", error.text()));
                }
                tracing::debug!(target: "upstream", server = %inner.spec.name, %error, detail = error.detail, "no document");
                backoff.next_spread()
            }
        };
        tokio::time::sleep(wait.max(SOONEST)).await;
    }
}

/// Takes on a document, unless it is the one that was seen last.
async fn take(inner: &Arc<Inner>, text: String, source: Option<Url>, seen: &mut Option<u64>) {
    let mark = mark(&text, source.as_ref());
    let is_well = matches!(inner.listing.borrow().state, octo_toolkit::SourceState::Ready);
    if *seen == Some(mark) && is_well {
        return;
    }
    *seen = Some(mark);
    let spec = inner.spec.clone();
    let read = tokio::task::spawn_blocking(move || Loaded::new(&spec, text, source));
    match read.await.map_err(ToolError::internal).and_then(|read| read) {
        Ok(loaded) => inner.publish(loaded),
        Err(error) => inner.down(&format!("its document cannot be used: {}", error.text())),
    }
}

/// Tells documents apart; it need not withstand anybody.
fn mark(text: &str, source: Option<&Url>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (text, source.map(Url::as_str)).hash(&mut hasher);
    hasher.finish()
}
