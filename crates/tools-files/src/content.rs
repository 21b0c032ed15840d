//! File content: bytes, encodings, lines and diffs.

pub(crate) mod byte_scanner;
pub(crate) mod content_hash;
pub(crate) mod encoding;
pub(crate) mod file_magic;
pub(crate) mod fuzzy_match;
pub(crate) mod text_lines;
pub(crate) mod text_reader;
pub(crate) mod unified_diff;
