//! Full-text search: English stems, BM25, and the selection and ranking of entities of a memory. Pure functions; each
//! index keeps its own words.

mod bm25;
mod entity_rank;
mod entity_search;
mod row_id;
mod stem;
mod tokenize;

pub use bm25::{idf, term_weight};
pub use entity_rank::{EntityScore, Term, score_entity};
pub use entity_search::{
    Candidate, Candidates, EntitySearch, FrequentWords, MAX_COMMON_ROWS, MAX_RECENT_FACTS, MAX_ROWS_PER_WORD,
    MAX_SCANNED_ROWS, MIN_PREFIX_CHARS, WordRows, older_rows, query_stems, unweighted_terms,
};
pub use row_id::{entity_of, first_row, last_row};
pub use stem::stem;
pub use tokenize::{normalize_name, tokenize};
