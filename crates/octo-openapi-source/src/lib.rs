//! APIs with an OpenAPI document as upstream servers: each operation is a tool. The document is watched, and a new
//! version replaces the old one immediately; active calls complete with the one they started with.

mod api_source;
mod document_fetch;
mod document_spec;
mod document_watch;
mod loaded_api;
mod operation_call;
mod operation_names;
mod operation_result;

pub use api_source::{Api, start};
pub use document_spec::{DocumentSource, DocumentSpec};
