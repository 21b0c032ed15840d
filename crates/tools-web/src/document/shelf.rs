//! Where documents stand, for a while and each for its owner alone.

use super::Document;
use octo_toolkit::{Caller, Principal, ToolError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Addresses that lead to one document.
const ADDRESSES: usize = 8;

/// How much is kept, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    pub kept_for: Duration,
    /// Documents of one caller.
    pub count: usize,
    /// Bytes of one caller's documents.
    pub own: usize,
    /// Bytes of all documents together.
    pub all: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { kept_for: Duration::from_secs(15 * 60), count: 64, own: 16 << 20, all: 64 << 20 }
    }
}

/// All documents that are kept. A clone is the same shelf.
#[derive(Clone, Default)]
pub struct Documents {
    room: Room,
    shelves: Arc<Mutex<HashMap<Principal, Shelf>>>,
}

/// The documents of one caller; the one that was used last stands last.
#[derive(Default)]
struct Shelf(Vec<Kept>);

struct Kept {
    since: Instant,
    addresses: Vec<String>,
    document: Arc<Document>,
}

impl Documents {
    #[cfg(test)]
    pub fn with(room: Room) -> Self {
        Self { room, ..Self::default() }
    }

    /// Keeps a document, in the place of what was read at this address before.
    pub fn keep(&self, caller: &Caller, address: String, document: Arc<Document>) {
        let mut shelves = self.shelves();
        let since = Instant::now();
        shelves.retain(|_, shelf| {
            shelf.0.retain(|kept| kept.since.elapsed() < self.room.kept_for);
            !shelf.0.is_empty()
        });
        shelves.entry(caller.principal.clone()).or_default().put(address, document, since, self.room);
        while shelves.values().map(Shelf::size).sum::<usize>() > self.room.all {
            // Whoever has most gives first, so that nobody can push out what others have.
            let fullest =
                shelves.values_mut().filter(|shelf| shelf.0.len() > 1).max_by_key(|shelf| shelf.size());
            let Some(fullest) = fullest else { break };
            fullest.0.remove(0);
        }
    }

    /// What the caller has read at this address.
    pub fn at(&self, caller: &Caller, address: &str) -> Option<Arc<Document>> {
        self.take(caller, |kept| kept.addresses.iter().any(|known| known == address))
    }

    /// What the caller knows by this handle; whose else it may be makes no difference.
    pub fn named(&self, caller: &Caller, handle: &str) -> Result<Arc<Document>, ToolError> {
        self.take(caller, |kept| kept.document.handle == handle).ok_or_else(|| {
            ToolError::not_found(format!("There is no page with the handle {handle} any more."))
                .hint("Pages are kept for 15 minutes. Call read_page with the url and without handle to read it again.")
        })
    }

    fn take(&self, caller: &Caller, is: impl Fn(&Kept) -> bool) -> Option<Arc<Document>> {
        let mut shelves = self.shelves();
        let Shelf(kept) = shelves.get_mut(&caller.principal)?;
        kept.retain(|kept| kept.since.elapsed() < self.room.kept_for);
        let found = kept.remove(kept.iter().position(is)?);
        let document = Arc::clone(&found.document);
        kept.push(found);
        Some(document)
    }

    fn shelves(&self) -> MutexGuard<'_, HashMap<Principal, Shelf>> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn size(&self) -> usize {
        self.0.iter().map(Kept::size).sum()
    }

    /// The newest stays, however large it is.
    fn put(&mut self, address: String, document: Arc<Document>, since: Instant, room: Room) {
        let mut addresses = vec![address];
        for kept in &mut self.0 {
            kept.addresses.retain(|known| !addresses.contains(known));
            if kept.document.handle == document.handle {
                addresses.append(&mut kept.addresses);
            }
        }
        addresses.truncate(ADDRESSES);
        self.0.retain(|kept| kept.document.handle != document.handle);
        self.0.push(Kept { since, addresses, document });
        while self.0.len() > 1 && (self.0.len() > room.count || self.size() > room.own) {
            self.0.remove(0);
        }
    }
}

impl Kept {
    fn size(&self) -> usize {
        self.document.size() + self.addresses.iter().map(String::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(room: Room) -> Documents {
        Documents::with(room)
    }

    fn page(text: &str, bytes: usize) -> Arc<Document> {
        Arc::new(Document::plain(
            &"http://x/".parse().unwrap(),
            format!("{text}{}", " ".repeat(bytes)),
            false,
        ))
    }

    const ROOM: Room = Room { kept_for: Duration::from_secs(60), count: 3, own: 40_000, all: 100_000 };

    #[test]
    fn a_document_is_its_readers_alone() {
        let documents = documents(ROOM);
        let (ann, bob) = (Caller::named("ann"), Caller::named("bob"));
        let elsewhere = Caller::from(Principal::new("other", "ann"));
        let own = page("ann's", 0);
        documents.keep(&ann, "a".to_owned(), Arc::clone(&own));
        assert!(documents.named(&ann, &own.handle).is_ok() && documents.at(&ann, "a").is_some());
        for other in [bob, elsewhere] {
            let theirs = documents.named(&other, &own.handle).unwrap_err();
            let nothing = documents.named(&other, "page_0").unwrap_err();
            assert_eq!(theirs.kind, nothing.kind);
            assert_eq!(theirs.message.replace(&own.handle, ""), nothing.message.replace("page_0", ""));
            assert!(documents.at(&other, "a").is_none());
        }
    }

    #[test]
    fn a_caller_has_a_bound_and_what_was_used_last_stays() {
        let documents = documents(ROOM);
        let ann = Caller::named("ann");
        let all: Vec<Arc<Document>> = (0..4).map(|at| page(&at.to_string(), 0)).collect();
        for (at, one) in all.iter().enumerate() {
            documents.keep(&ann, at.to_string(), Arc::clone(one));
            documents.named(&ann, &all[0].handle).unwrap();
        }
        let there: Vec<bool> = all.iter().map(|one| documents.named(&ann, &one.handle).is_ok()).collect();
        assert_eq!(there, [true, false, true, true]);
        documents.keep(&ann, "large".to_owned(), page("large", 39_500));
        assert!(documents.at(&ann, "3").is_none() && documents.at(&ann, "large").is_some());
        documents.keep(&ann, "huge".to_owned(), page("huge", 200_000));
        assert!(documents.at(&ann, "huge").is_some(), "the newest is kept, whatever its size");
    }

    #[test]
    fn one_caller_cannot_push_out_what_others_read() {
        let documents = documents(Room { count: 1_000, own: 90_000, ..ROOM });
        let (ann, bob) = (Caller::named("ann"), Caller::named("bob"));
        documents.keep(&ann, "a".to_owned(), page("a", 20_000));
        for at in 0..50 {
            documents.keep(&bob, at.to_string(), page(&at.to_string(), 20_000));
            let size: usize = documents.shelves().values().map(Shelf::size).sum();
            assert!(size <= ROOM.all, "{size}");
        }
        assert!(documents.at(&ann, "a").is_some());
        let kept = (0..50).filter(|at| documents.at(&bob, &at.to_string()).is_some()).count();
        assert_eq!(kept, 3);
    }

    #[test]
    fn documents_go_when_their_time_is_over() {
        let documents = documents(Room { kept_for: Duration::from_millis(30), ..ROOM });
        let ann = Caller::named("ann");
        let one = page("one", 0);
        documents.keep(&ann, "a".to_owned(), Arc::clone(&one));
        let late = Instant::now() + Duration::from_secs(5);
        // Using it does not make it younger.
        while documents.named(&ann, &one.handle).is_ok() {
            assert!(Instant::now() < late, "it is kept for ever");
            std::thread::yield_now();
        }
        assert!(documents.at(&ann, "a").is_none());
        documents.keep(&Caller::named("bob"), "b".to_owned(), page("b", 0));
        assert_eq!(documents.shelves().len(), 1, "what is over is let go of");
    }

    #[test]
    fn what_is_read_again_takes_the_place_of_the_old() {
        let documents = documents(ROOM);
        let ann = Caller::named("ann");
        let (old, new) = (page("old", 0), page("new", 0));
        documents.keep(&ann, "a".to_owned(), Arc::clone(&old));
        documents.keep(&ann, "also a".to_owned(), Arc::clone(&old));
        documents.keep(&ann, "a".to_owned(), Arc::clone(&new));
        assert_eq!(documents.at(&ann, "a").unwrap().handle, new.handle);
        assert_eq!(documents.at(&ann, "also a").unwrap().handle, old.handle);
        assert!(documents.named(&ann, &old.handle).is_ok(), "its handle still means the same text");
    }
}
