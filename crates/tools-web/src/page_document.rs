//! Pages that were read, cached for 15 minutes for the principal that read them: reading the next part or a section, or
//! searching, needs no new request and sees the same text.

mod document_cache;
mod load_document;
mod outline;
mod page_fetch;
mod passages;

#[cfg(test)]
pub use document_cache::CacheLimits;
pub use document_cache::DocumentCache;
pub use load_document::{PageRequest, ReadContext, load};
pub use outline::{Heading, outline, section};
pub use passages::{Passage, passages};

use crate::extract::PageType;
use std::hash::{DefaultHasher, Hash, Hasher};

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
    /// Note about how it was read.
    pub note: Option<String>,
    /// Whether the page was longer than what was fetched.
    pub truncated: bool,
    pub outline: Vec<Heading>,
}

impl Document {
    /// The same page has the same handle, so an earlier handle refers to the same text or to nothing.
    pub fn handle(url: &str, content: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (url, content).hash(&mut hasher);
        format!("page_{:016x}", hasher.finish())
    }

    fn size(&self) -> usize {
        self.content.len() + self.outline.iter().map(|heading| heading.text.len() + 64).sum::<usize>() + 1024
    }
}
