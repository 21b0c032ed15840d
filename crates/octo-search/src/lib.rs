//! Full-text search: English stems and BM25. Pure functions; each index keeps its own words.

mod bm25;
mod stem;

pub use bm25::{idf, term_weight};
pub use stem::stem;
