//! Pages that were read, kept for a quarter of an hour for whoever read them: the next part, a section or a search in one
//! costs no new request and cannot drift.

mod open;
mod outline;
mod passages;

pub use open::{Wanted, open};
pub use outline::{Heading, outline, section};
pub use passages::{Passage, passages};

use crate::extract::PageType;
use moka::future::Cache;
use octo_toolkit::{Cx, ToolError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

const KEPT_FOR: Duration = Duration::from_secs(15 * 60);
/// Bytes of all documents together; the least used go first.
const ROOM: u64 = 64 << 20;

/// A page as it was read.
#[derive(Debug)]
pub struct Document {
    pub handle: String,
    pub url: String,
    pub title: String,
    pub byline: Option<String>,
    pub published: Option<String>,
    pub excerpt: Option<String>,
    pub lang: Option<String>,
    pub page_type: PageType,
    pub quality: f64,
    /// Markdown.
    pub content: String,
    pub words: usize,
    /// Something the reader should know about how it was read.
    pub note: Option<String>,
    /// Whether the page was longer than what was fetched.
    pub cut: bool,
    pub outline: Vec<Heading>,
}

impl Document {
    /// The same page has the same handle, so that one from before means the same text or nothing.
    pub fn handle(url: &str, content: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (url, content).hash(&mut hasher);
        format!("page_{:016x}", hasher.finish())
    }

    fn size(&self) -> usize {
        self.content.len() + self.outline.iter().map(|heading| heading.text.len() + 64).sum::<usize>() + 1024
    }
}

/// Whose a document is, and what it is found by.
#[derive(PartialEq, Eq, Hash, Clone)]
struct Key {
    tenant: String,
    subject: String,
    name: String,
}

impl Key {
    fn new(cx: &Cx, name: String) -> Self {
        Self { tenant: cx.caller.tenant.clone(), subject: cx.caller.subject.clone(), name }
    }
}

/// All documents that are kept. A clone is the same shelf.
#[derive(Clone)]
pub struct Documents {
    by_handle: Cache<Key, Arc<Document>>,
    by_address: Cache<Key, Arc<Document>>,
}

impl Documents {
    pub fn new() -> Self {
        let cache = || {
            Cache::builder()
                .max_capacity(ROOM)
                .weigher(|key: &Key, document: &Arc<Document>| {
                    u32::try_from(document.size() + key.name.len()).unwrap_or(u32::MAX)
                })
                .time_to_live(KEPT_FOR)
                .build()
        };
        Self { by_handle: cache(), by_address: cache() }
    }

    pub async fn keep(&self, cx: &Cx, address: String, document: Arc<Document>) {
        self.by_handle.insert(Key::new(cx, document.handle.clone()), Arc::clone(&document)).await;
        self.by_address.insert(Key::new(cx, address), document).await;
    }

    pub async fn at(&self, cx: &Cx, address: String) -> Option<Arc<Document>> {
        self.by_address.get(&Key::new(cx, address)).await
    }

    pub async fn named(&self, cx: &Cx, handle: &str) -> Result<Arc<Document>, ToolError> {
        self.by_handle.get(&Key::new(cx, handle.to_owned())).await.ok_or_else(|| {
            ToolError::not_found(format!("There is no page with the handle {handle} any more."))
                .hint("Pages are kept for 15 minutes. Call read_page with the url and without handle to read it again.")
        })
    }
}
