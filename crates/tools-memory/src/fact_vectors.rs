//! Embeddings of what is remembered. They are in memory only: a stored one would outlive a fact that was erased.

use octo_embed::{Embedding, TextEncoder, similarity};
use octo_toolkit::{Principal, sha256_hex};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Embeddings in memory. Beyond this number all are dropped, and computed again as they are needed.
const MAX_VECTORS: usize = 50_000;
/// Bytes of a text that are embedded.
const MAX_TEXT_BYTES: usize = 1_000;
/// Time that a query may spend on texts without embeddings. Later queries continue.
const EMBEDDING_TIME: Duration = Duration::from_secs(2);

/// Computes embeddings of texts, and how similar they are to a query.
pub struct FactVectors {
    encoder: Arc<TextEncoder>,
    known: Mutex<HashMap<String, Embedding>>,
    /// Held by the query that embeds texts: all queries together use one processor for that.
    embedding: Mutex<()>,
}

impl FactVectors {
    pub fn new(encoder: Arc<TextEncoder>) -> Self {
        Self { encoder, known: Mutex::default(), embedding: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Embedding>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How similar the texts of each group are to a query; zero if it is not known. Texts that are not embedded yet are
    /// skipped if that takes too long, if another query is at it, or once nobody waits for the result.
    pub fn similarities(
        &self,
        owner: &Principal,
        query: &str,
        groups: &[Vec<String>],
        is_awaited: impl Fn() -> bool,
    ) -> Vec<Vec<f32>> {
        if !is_awaited() {
            return Vec::new();
        }
        let query = self.encoder.embed(beginning(query));
        let turn = match self.embedding.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let until = turn.as_ref().map(|_| Instant::now() + EMBEDDING_TIME);
        let may_embed = || until.is_some_and(|until| Instant::now() < until) && is_awaited();
        let of_text = |text: &String| {
            let vector = self.embed(owner, text, may_embed);
            vector.map_or(0.0, |vector| similarity(&vector, &query))
        };
        groups.iter().map(|texts| texts.iter().map(of_text).collect()).collect()
    }

    /// The embedding of a text of an owner: what is known of one says nothing to another.
    fn embed(&self, owner: &Principal, text: &str, may_embed: impl Fn() -> bool) -> Option<Embedding> {
        let key = sha256_hex(format!("{owner:?}\n{text}").as_bytes());
        if let Some(vector) = self.known().get(&key) {
            return Some(vector.clone());
        }
        if !may_embed() {
            return None;
        }
        let vector = self.encoder.embed(beginning(text));
        let mut known = self.known();
        if known.len() >= MAX_VECTORS {
            known.clear();
        }
        known.insert(key, vector.clone());
        Some(vector)
    }
}

fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or_default()
}
