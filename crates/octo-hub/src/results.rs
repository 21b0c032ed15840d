//! Result limits, and the stored results for later reading.

pub(crate) mod image_size;
pub mod jq_eval;
pub(crate) mod json_shape;
pub(crate) mod preview_text;
pub(crate) mod repeated_structure;
pub(crate) mod reply_size;
pub(crate) mod reply_text;
pub(crate) mod result_failure;
pub(crate) mod result_limit;
pub(crate) mod result_read;
pub(crate) mod results_source;
pub(crate) mod structure_text;
pub(crate) mod truncate;
pub(crate) mod truncate_text;
