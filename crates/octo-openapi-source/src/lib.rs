//! An API with an OpenAPI document as a server: each operation is a tool. The document is followed, and a new one takes the
//! place of the old one at once; calls under way end with the one they began with.

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
