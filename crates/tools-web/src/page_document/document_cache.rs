//! Document cache with expiry, separate for each principal.

use super::Document;
use octo_toolkit::{Caller, Principal, ToolError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of URLs for one document.
const MAX_ADDRESSES: usize = 8;

/// Size and age limits of the cache.
#[derive(Debug, Clone, Copy)]
pub struct CacheLimits {
    pub ttl: Duration,
    /// Documents per principal.
    pub max_documents: usize,
    /// Bytes per principal.
    pub max_principal_bytes: usize,
    /// Bytes of all documents together.
    pub max_total_bytes: usize,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(15 * 60),
            max_documents: 64,
            max_principal_bytes: 16 << 20,
            max_total_bytes: 64 << 20,
        }
    }
}

/// All cached documents. Clones share the cache.
#[derive(Clone, Default)]
pub struct DocumentCache {
    limits: CacheLimits,
    by_principal: Arc<Mutex<HashMap<Principal, PrincipalDocuments>>>,
}

/// Documents of one principal, least recently used first.
#[derive(Default)]
struct PrincipalDocuments(Vec<CacheEntry>);

struct CacheEntry {
    created: Instant,
    addresses: Vec<String>,
    document: Arc<Document>,
}

impl DocumentCache {
    #[cfg(test)]
    pub fn with_limits(limits: CacheLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Stores a document, replacing what was read at this URL before.
    pub fn insert(&self, caller: &Caller, address: String, document: Arc<Document>) {
        let mut by_principal = self.by_principal();
        let since = Instant::now();
        by_principal.retain(|_, shelf| {
            shelf.0.retain(|kept| kept.created.elapsed() < self.limits.ttl);
            !shelf.0.is_empty()
        });
        by_principal.entry(caller.principal.clone()).or_default().insert(
            address,
            document,
            since,
            self.limits,
        );
        while by_principal.values().map(PrincipalDocuments::size).sum::<usize>() > self.limits.max_total_bytes
        {
            // Evict from the principal with the most bytes, so that none can evict the documents of others.
            let fullest =
                by_principal.values_mut().filter(|shelf| shelf.0.len() > 1).max_by_key(|shelf| shelf.size());
            let Some(fullest) = fullest else { break };
            fullest.0.remove(0);
        }
    }

    /// Document that the caller has read at this URL.
    pub fn get_by_address(&self, caller: &Caller, address: &str) -> Option<Arc<Document>> {
        self.find_and_touch(caller, |kept| kept.addresses.iter().any(|known| known == address))
    }

    /// Document with this handle. A handle of another principal is reported as not found, too.
    pub fn get_by_handle(&self, caller: &Caller, handle: &str) -> Result<Arc<Document>, ToolError> {
        self.find_and_touch(caller, |kept| kept.document.handle == handle).ok_or_else(|| {
            ToolError::not_found(format!("Page not found: {handle}."))
                .hint("Handles expire after 15 minutes. Call read_page with the url and without handle to read it again.")
        })
    }

    fn find_and_touch(
        &self,
        caller: &Caller,
        matches: impl Fn(&CacheEntry) -> bool,
    ) -> Option<Arc<Document>> {
        let mut by_principal = self.by_principal();
        let PrincipalDocuments(kept) = by_principal.get_mut(&caller.principal)?;
        kept.retain(|kept| kept.created.elapsed() < self.limits.ttl);
        let found = kept.remove(kept.iter().position(matches)?);
        let document = Arc::clone(&found.document);
        kept.push(found);
        Some(document)
    }

    fn by_principal(&self) -> MutexGuard<'_, HashMap<Principal, PrincipalDocuments>> {
        self.by_principal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PrincipalDocuments {
    fn size(&self) -> usize {
        self.0.iter().map(CacheEntry::size).sum()
    }

    /// The newest document is stored whatever its size.
    fn insert(&mut self, address: String, document: Arc<Document>, since: Instant, limits: CacheLimits) {
        let mut addresses = vec![address];
        for kept in &mut self.0 {
            kept.addresses.retain(|known| !addresses.contains(known));
            if kept.document.handle == document.handle {
                addresses.append(&mut kept.addresses);
            }
        }
        addresses.truncate(MAX_ADDRESSES);
        self.0.retain(|kept| kept.document.handle != document.handle);
        self.0.push(CacheEntry { created: since, addresses, document });
        while self.0.len() > 1
            && (self.0.len() > limits.max_documents || self.size() > limits.max_principal_bytes)
        {
            self.0.remove(0);
        }
    }
}

impl CacheEntry {
    fn size(&self) -> usize {
        self.document.size() + self.addresses.iter().map(String::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_cache(room: CacheLimits) -> DocumentCache {
        DocumentCache::with_limits(room)
    }

    fn page(text: &str, bytes: usize) -> Arc<Document> {
        Arc::new(Document::plain(
            &"http://x/".parse().unwrap(),
            format!("{text}{}", " ".repeat(bytes)),
            false,
        ))
    }

    const TEST_LIMITS: CacheLimits = CacheLimits {
        ttl: Duration::from_secs(60),
        max_documents: 3,
        max_principal_bytes: 40_000,
        max_total_bytes: 100_000,
    };

    #[test]
    fn a_document_is_its_readers_alone() {
        let documents = new_cache(TEST_LIMITS);
        let (ann, bob) = (Caller::named("ann"), Caller::named("bob"));
        let elsewhere = Caller::from(Principal::new("other", "ann"));
        let own = page("ann's", 0);
        documents.insert(&ann, "a".to_owned(), Arc::clone(&own));
        assert!(
            documents.get_by_handle(&ann, &own.handle).is_ok()
                && documents.get_by_address(&ann, "a").is_some()
        );
        for other in [bob, elsewhere] {
            let theirs = documents.get_by_handle(&other, &own.handle).unwrap_err();
            let nothing = documents.get_by_handle(&other, "page_0").unwrap_err();
            assert_eq!(theirs.kind, nothing.kind);
            assert_eq!(theirs.message.replace(&own.handle, ""), nothing.message.replace("page_0", ""));
            assert!(documents.get_by_address(&other, "a").is_none());
        }
    }

    #[test]
    fn a_caller_has_a_bound_and_what_was_used_last_stays() {
        let documents = new_cache(TEST_LIMITS);
        let ann = Caller::named("ann");
        let all: Vec<Arc<Document>> = (0..4).map(|at| page(&at.to_string(), 0)).collect();
        for (at, one) in all.iter().enumerate() {
            documents.insert(&ann, at.to_string(), Arc::clone(one));
            documents.get_by_handle(&ann, &all[0].handle).unwrap();
        }
        let there: Vec<bool> =
            all.iter().map(|one| documents.get_by_handle(&ann, &one.handle).is_ok()).collect();
        assert_eq!(there, [true, false, true, true]);
        documents.insert(&ann, "large".to_owned(), page("large", 39_500));
        assert!(
            documents.get_by_address(&ann, "3").is_none()
                && documents.get_by_address(&ann, "large").is_some()
        );
        documents.insert(&ann, "huge".to_owned(), page("huge", 200_000));
        assert!(documents.get_by_address(&ann, "huge").is_some(), "the newest is kept, whatever its size");
    }

    #[test]
    fn one_caller_cannot_push_out_what_others_read() {
        let documents =
            new_cache(CacheLimits { max_documents: 1_000, max_principal_bytes: 90_000, ..TEST_LIMITS });
        let (ann, bob) = (Caller::named("ann"), Caller::named("bob"));
        documents.insert(&ann, "a".to_owned(), page("a", 20_000));
        for at in 0..50 {
            documents.insert(&bob, at.to_string(), page(&at.to_string(), 20_000));
            let size: usize = documents.by_principal().values().map(PrincipalDocuments::size).sum();
            assert!(size <= TEST_LIMITS.max_total_bytes, "{size}");
        }
        assert!(documents.get_by_address(&ann, "a").is_some());
        let kept = (0..50).filter(|at| documents.get_by_address(&bob, &at.to_string()).is_some()).count();
        assert_eq!(kept, 3);
    }

    #[test]
    fn documents_go_when_their_time_is_over() {
        let documents = new_cache(CacheLimits { ttl: Duration::from_millis(30), ..TEST_LIMITS });
        let ann = Caller::named("ann");
        let one = page("one", 0);
        documents.insert(&ann, "a".to_owned(), Arc::clone(&one));
        let late = Instant::now() + Duration::from_secs(5);
        // Use does not extend the lifetime.
        while documents.get_by_handle(&ann, &one.handle).is_ok() {
            assert!(Instant::now() < late, "it is kept for ever");
            std::thread::yield_now();
        }
        assert!(documents.get_by_address(&ann, "a").is_none());
        documents.insert(&Caller::named("bob"), "b".to_owned(), page("b", 0));
        assert_eq!(documents.by_principal().len(), 1, "what is over is let go of");
    }

    #[test]
    fn what_is_read_again_takes_the_place_of_the_old() {
        let documents = new_cache(TEST_LIMITS);
        let ann = Caller::named("ann");
        let (old, new) = (page("old", 0), page("new", 0));
        documents.insert(&ann, "a".to_owned(), Arc::clone(&old));
        documents.insert(&ann, "also a".to_owned(), Arc::clone(&old));
        documents.insert(&ann, "a".to_owned(), Arc::clone(&new));
        assert_eq!(documents.get_by_address(&ann, "a").unwrap().handle, new.handle);
        assert_eq!(documents.get_by_address(&ann, "also a").unwrap().handle, old.handle);
        assert!(documents.get_by_handle(&ann, &old.handle).is_ok(), "its handle still means the same text");
    }
}
