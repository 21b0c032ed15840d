//! The embeddings of texts, kept between runs so that they are computed once.

use aws_lc_rs::digest::{SHA256, digest};
use octo_embed::Embedding;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

const MAGIC: [u8; 8] = *b"octovec1";
const KEY_BYTES: usize = 16;
/// Embeddings that are kept.
const MAX_VECTORS: usize = 50_000;
const ENTRY_BYTES: usize = KEY_BYTES + Embedding::BYTES;

type TextKey = [u8; KEY_BYTES];

/// Keeps embeddings between runs, as bytes.
pub trait VectorStore: Send + Sync {
    /// Returns what was saved last, in at most this many bytes.
    fn load(&self, max_bytes: usize) -> io::Result<Vec<u8>>;
    fn save(&self, content: &[u8]) -> io::Result<()>;
}

/// Embeddings by the hashes of their texts, for one model.
pub struct VectorCache {
    model: TextKey,
    store: Arc<dyn VectorStore>,
    vectors: HashMap<TextKey, Embedding>,
    is_saved: bool,
    saved_at: Instant,
}

impl VectorCache {
    /// Begins with what is stored, unless it is damaged or of another model.
    pub fn open(model: &[u8], store: Arc<dyn VectorStore>) -> Self {
        let model = key(model);
        let mut cache =
            Self { model, store, vectors: HashMap::new(), is_saved: true, saved_at: Instant::now() };
        cache.vectors = cache.stored();
        cache
    }

    fn stored(&self) -> HashMap<TextKey, Embedding> {
        let max_bytes = MAGIC.len() + KEY_BYTES + MAX_VECTORS * ENTRY_BYTES;
        let content = self.store.load(max_bytes).unwrap_or_default();
        parse(&self.model, &content).unwrap_or_default()
    }

    pub fn get(&self, text: &str) -> Option<Embedding> {
        self.vectors.get(&key(text.as_bytes())).cloned()
    }

    /// Keeps an embedding. A cache that is full begins anew: a server that changes its tools all the time fills it.
    pub fn put(&mut self, text: &str, vector: Embedding) {
        if self.vectors.len() >= MAX_VECTORS {
            self.vectors.clear();
        }
        self.vectors.insert(key(text.as_bytes()), vector);
        self.is_saved = false;
    }

    /// Whether something was put, and the last time that it was stored is this long ago.
    pub fn is_unsaved_for(&self, time: Duration) -> bool {
        !self.is_saved && self.saved_at.elapsed() >= time
    }

    /// Stores the embeddings if something was put, with those that other hubs have stored meanwhile.
    pub fn save(&mut self) -> io::Result<()> {
        if self.is_saved {
            return Ok(());
        }
        let mut stored = self.stored();
        stored.retain(|key, _| !self.vectors.contains_key(key));
        let all = self.vectors.iter().chain(&stored).take(MAX_VECTORS);
        let mut content = Vec::with_capacity(MAGIC.len() + KEY_BYTES + all.clone().count() * ENTRY_BYTES);
        content.extend(MAGIC.iter().chain(&self.model));
        for (key, vector) in all {
            content.extend(key);
            content.extend(vector.to_bytes());
        }
        self.store.save(&content)?;
        (self.is_saved, self.saved_at) = (true, Instant::now());
        Ok(())
    }
}

fn parse(model: &TextKey, content: &[u8]) -> Option<HashMap<TextKey, Embedding>> {
    let entries = content.strip_prefix(&MAGIC)?.strip_prefix(model)?;
    let (entries, rest) = entries.as_chunks::<ENTRY_BYTES>();
    let entry = |entry: &[u8; ENTRY_BYTES]| {
        let (key, vector) = entry.split_first_chunk::<KEY_BYTES>()?;
        Some((*key, Embedding::from_bytes(vector)?))
    };
    rest.is_empty().then(|| entries.iter().filter_map(entry).collect())
}

fn key(bytes: &[u8]) -> TextKey {
    let mut key = TextKey::default();
    key.iter_mut().zip(digest(&SHA256, bytes).as_ref()).for_each(|(to, from)| *to = *from);
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn vector(value: u8) -> Embedding {
        let bytes: Vec<u8> = (0..Embedding::BYTES).map(|at| value.wrapping_mul(at as u8)).collect();
        Embedding::from_bytes(&bytes).unwrap()
    }

    #[derive(Default)]
    struct StoredBytes(Mutex<Vec<u8>>);

    impl VectorStore for StoredBytes {
        fn load(&self, _: usize) -> io::Result<Vec<u8>> {
            Ok(self.0.lock().unwrap().clone())
        }

        fn save(&self, content: &[u8]) -> io::Result<()> {
            *self.0.lock().unwrap() = content.to_vec();
            Ok(())
        }
    }

    #[test]
    fn a_cache_does_not_grow_without_end() {
        let mut cache = VectorCache::open(b"model", Arc::new(StoredBytes::default()));
        for number in 0..MAX_VECTORS * 2 + 10 {
            cache.put(&number.to_string(), vector(1));
            assert!(cache.vectors.len() <= MAX_VECTORS);
        }
        assert_eq!(cache.get(&(MAX_VECTORS * 2 + 9).to_string()), Some(vector(1)));
        assert_eq!(cache.get("0"), None);
    }

    #[test]
    fn hubs_with_one_store_keep_the_embeddings_of_each_other() {
        let store = Arc::new(StoredBytes::default());
        let open = |model: &[u8]| VectorCache::open(model, Arc::clone(&store) as Arc<dyn VectorStore>);
        let (mut one, mut two) = (open(b"model"), open(b"model"));
        assert!(!one.is_unsaved_for(Duration::ZERO));
        one.put("a", vector(1));
        assert!(one.is_unsaved_for(Duration::ZERO) && !one.is_unsaved_for(Duration::from_secs(60)));
        two.put("b", vector(2));
        two.put("a", vector(1));
        one.save().unwrap();
        two.save().unwrap();
        let next = open(b"model");
        assert_eq!((next.get("a"), next.get("b"), next.vectors.len()), (Some(vector(1)), Some(vector(2)), 2));
        // Those of another model are replaced.
        let mut other = open(b"other");
        other.put("c", vector(3));
        other.save().unwrap();
        assert_eq!(open(b"other").vectors.len(), 1);
        // The file does not grow without end either.
        let mut full = open(b"other");
        for number in 0..MAX_VECTORS {
            full.vectors.insert(key(&number.to_le_bytes()), vector(1));
        }
        full.is_saved = false;
        full.save().unwrap();
        assert_eq!(open(b"other").vectors.len(), MAX_VECTORS);
    }

    #[test]
    fn embeddings_outlive_the_process() {
        let store = Arc::new(StoredBytes::default());
        let open = |model: &[u8]| VectorCache::open(model, Arc::clone(&store) as Arc<dyn VectorStore>);
        let mut cache = open(b"model");
        cache.put("a", vector(1));
        cache.put("b", vector(2));
        cache.save().unwrap();
        let next = open(b"model");
        assert_eq!((next.get("a"), next.get("b"), next.get("c")), (Some(vector(1)), Some(vector(2)), None));
        assert_eq!(open(b"another").get("a"), None);
        // What is damaged counts as nothing.
        let content = store.0.lock().unwrap().clone();
        for damaged in [&content[1..], &content[..content.len() - 1], b"", b"octovec1", &content[..10]] {
            store.save(damaged).unwrap();
            assert_eq!(open(b"model").get("a"), None);
        }
        cache.put("c", vector(3));
        cache.save().unwrap();
        assert_eq!(open(b"model").get("c"), Some(vector(3)));
    }
}
