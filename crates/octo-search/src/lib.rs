//! Full-text search: English stems, BM25, the selection and ranking of entities of a memory, and the index of tools with
//! their signatures. No I/O.

mod bm25;
mod entity_rank;
mod entity_search;
mod field_index;
mod field_words;
mod parameter_texts;
mod repetition;
mod row_id;
mod stem;
mod tokenize;
mod tool_signature;

pub use bm25::{idf, term_weight};
pub use entity_rank::{EntityScore, Term, score_entity};
pub use entity_search::{
    Candidate, Candidates, EntitySearch, FrequentWords, MAX_COMMON_ROWS, MAX_RECENT_FACTS, MAX_ROWS_PER_WORD,
    MAX_SCANNED_ROWS, MIN_PREFIX_CHARS, WordRows, older_rows, query_stems, unweighted_terms,
};
pub use field_index::{Document, FIELD_COUNT, Field, FieldIndex, FieldSettings, Group, Hit, Ranking};
pub use parameter_texts::{ParameterTexts, parameter_texts};
pub use repetition::repetition;
pub use row_id::{entity_of, first_row, last_row};
pub use stem::stem;
pub use tokenize::{normalize_name, tokenize};
pub use tool_signature::tool_signature;
