//! Loads the document at the start and whenever it changes.

use crate::api_source::ApiState;
use crate::document_fetch::DocumentLocation;
use crate::document_spec::DocumentSource;
use crate::loaded_api::LoadedApi;
use octo_grants::config_dirs::ConfigDirs;
use octo_model::ToolError;
use octo_openapi::MAX_DOCUMENT_BYTES;
use octo_toolkit::Backoff;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Lower bound of the polling interval.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) async fn run(inner: Arc<ApiState>) {
    let stop = inner.stop.clone();
    let following = async {
        match inner.spec.document.clone() {
            DocumentSource::File(path) => watch_file(&inner, path).await,
            DocumentSource::Url(url) => poll_url(&inner, &url).await,
        }
    };
    tokio::select! {
        () = following => {}
        () = stop.cancelled() => {}
    }
}

async fn watch_file(inner: &Arc<ApiState>, path: PathBuf) {
    let mut watched = ConfigDirs::new(vec![path])
        .with_max_file_bytes(MAX_DOCUMENT_BYTES as u64)
        .with_approval(inner.spec.approval.clone())
        .into_watcher();
    let mut seen = None;
    while let Some(leaves) = watched.read().await {
        match leaves.into_iter().next().map(|leaf| leaf.content) {
            Some(Ok(text)) => load_document(inner, text, None, &mut seen).await,
            Some(Err(why)) => inner.mark_down(&format!("cannot read the document: {why}")),
            None => inner.mark_down("the document's path is a directory without a document"),
        }
        watched.changed().await;
    }
}

async fn poll_url(inner: &Arc<ApiState>, url: &str) {
    let mut origin = match DocumentLocation::new(&inner.spec, url) {
        Ok(origin) => origin,
        Err(error) => {
            return inner.mark_down(&format!("the document's URL is invalid: {}", error.message));
        }
    };
    let mut backoff = Backoff::default();
    let mut seen = None;
    loop {
        let wait = match origin.fetch().await {
            Ok(fetched) => {
                backoff.reset();
                if let Some(fetched) = fetched {
                    load_document(inner, fetched.text, Some(fetched.url), &mut seen).await;
                }
                inner.spec.refresh
            }
            Err(error) => {
                // The API may be available although its document is not.
                if inner.loaded.load().is_none() {
                    inner.mark_down(&format!("cannot fetch the document: {}", error.text()));
                }
                tracing::debug!(target: "upstream", server = %inner.spec.name, %error, detail = error.detail, "cannot fetch the document");
                backoff.next_delay_with_jitter()
            }
        };
        tokio::time::sleep(wait.max(MIN_REFRESH_INTERVAL)).await;
    }
}

/// Loads a document, unless it is the one seen last.
async fn load_document(inner: &Arc<ApiState>, text: String, source: Option<Url>, seen: &mut Option<u64>) {
    let mark = fingerprint(&text, source.as_ref());
    let is_well = matches!(inner.listing.borrow().state, octo_toolkit::SourceState::Ready);
    if *seen == Some(mark) && is_well {
        return;
    }
    *seen = Some(mark);
    let spec = inner.spec.clone();
    let read = tokio::task::spawn_blocking(move || LoadedApi::new(&spec, text, source));
    match read.await.map_err(ToolError::internal).and_then(|read| read) {
        Ok(loaded) => inner.publish(loaded),
        Err(error) => inner.mark_down(&format!("invalid document: {}", error.text())),
    }
}

/// Distinguishes documents; not collision resistant.
fn fingerprint(text: &str, source: Option<&Url>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (text, source.map(Url::as_str)).hash(&mut hasher);
    hasher.finish()
}
