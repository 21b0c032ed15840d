//! What tools do, as embeddings of their descriptions: a search by meaning compares them with that of the query.

use crate::catalogue::item::Item;
use crate::find::vector_cache::{VectorCache, VectorStore};
use octo_admission::{FairSlots, SlotLimits};
use octo_embed::{Embedding, TextEncoder};
use octo_model::{Principal, ToolError};
use std::iter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Bytes of a description that are embedded.
const MAX_DESCRIPTION_BYTES: usize = 800;
/// Bytes of a query that are embedded.
const MAX_QUERY_BYTES: usize = 1_000;
/// Queries that are embedded at once.
const MAX_QUERIES: usize = 4;
/// How long a query waits until it is embedded.
const MAX_QUERY_WAIT: Duration = Duration::from_millis(500);
/// How often what was embedded is kept during a long pass.
const SAVE_INTERVAL: Duration = Duration::from_secs(60);

/// Embeds tools and queries.
pub struct ToolVectors {
    encoder: Arc<TextEncoder>,
    cache: Mutex<VectorCache>,
    slots: Arc<FairSlots>,
}

impl ToolVectors {
    pub fn new(encoder: Arc<TextEncoder>, store: Arc<dyn VectorStore>) -> Self {
        let cache = VectorCache::open(encoder.pack().sha256(), store);
        let slots = FairSlots::new("embedding", SlotLimits::new(MAX_QUERIES));
        Self { encoder, cache: Mutex::new(cache), slots }
    }

    fn cache(&self) -> MutexGuard<'_, VectorCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The embeddings of these texts, if all are known.
    pub fn known(&self, texts: &[Vec<String>]) -> Option<Vec<Vec<Embedding>>> {
        let cache = self.cache();
        texts.iter().map(|texts| texts.iter().map(|text| cache.get(text)).collect()).collect()
    }

    /// Embeds texts, or takes their embeddings from the cache.
    pub async fn embed(self: &Arc<Self>, texts: Vec<String>) -> Result<Vec<Embedding>, ToolError> {
        let vectors = Arc::clone(self);
        let embedded = tokio::task::spawn_blocking(move || {
            texts.iter().map(|text| vectors.embed_one(text)).collect::<Vec<Embedding>>()
        });
        embedded.await.map_err(ToolError::internal)
    }

    fn embed_one(&self, text: &str) -> Embedding {
        if let Some(known) = self.cache().get(text) {
            return known;
        }
        let vector = self.encoder.embed(text);
        self.cache().put(text, vector.clone());
        vector
    }

    /// Keeps what was embedded for the next start.
    pub async fn save(self: &Arc<Self>) -> Result<(), ToolError> {
        let vectors = Arc::clone(self);
        let saved = tokio::task::spawn_blocking(move || vectors.cache().save());
        saved.await.map_err(ToolError::internal)?.map_err(ToolError::internal)
    }

    /// The same, unless that was done a moment ago.
    pub async fn save_if_due(self: &Arc<Self>) -> Result<(), ToolError> {
        let is_due = self.cache().is_unsaved_for(SAVE_INTERVAL);
        if is_due { self.save().await } else { Ok(()) }
    }

    /// Embeds a query, which is not kept. None if others are embedded for too long, or if that fails.
    pub async fn embed_query(self: &Arc<Self>, who: &Principal, query: &str) -> Option<Embedding> {
        let slot = self.slots.acquire(who, Instant::now() + MAX_QUERY_WAIT).await.ok()?;
        let vectors = Arc::clone(self);
        let query = beginning(query, MAX_QUERY_BYTES).to_owned();
        let (sender, embedded) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            // Whoever searches may be gone.
            if !sender.is_closed() {
                let _ = sender.send(vectors.encoder.embed(&query));
            }
            drop(slot);
        });
        embedded.await.ok()
    }
}

/// The texts of a tool that are embedded: a query is as similar to the tool as to the closest of them.
pub fn texts_of(item: &Item, requests: &[String]) -> Vec<String> {
    let description = item.members.text("description").unwrap_or_default();
    let description = beginning(&description, MAX_DESCRIPTION_BYTES);
    let definition = format!("{}: {description}", item.key.replace(['_', '-', '.'], " "));
    iter::once(definition).chain(requests.iter().cloned()).collect()
}

fn beginning(text: &str, max_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default()
}
