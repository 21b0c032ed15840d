//! OpenAPI documents (2.0, 3.0, 3.1): parsing, search for operations, and requests built by parts. Sends nothing
//! itself: the `Net` grant does.

mod bundle;
mod compat_schema;
mod credential;
mod document;
mod document_text;
mod json_pointer;
mod markup;
mod operation;
mod operation_search;
mod redact;
mod response_body;
mod sample;
mod schema_types;
mod signature;
mod swagger;
mod tokenize;
mod value_ext;

pub use crate::document::operation_tool::OperationTool;
pub use crate::document::ref_inliner::RefInliner;
pub use crate::document::request::{Request, RequestValues};
pub use crate::document::server_url::ServerOptions;
pub use bundle::{Bundle, bundle};
pub use credential::{Credential, CredentialOutcome};
pub use document::{Document, OperationSummary, PathMatch, Version};
pub use document_text::MAX_DOCUMENT_BYTES;
pub use operation::{ApiOperation, Body, MediaType, Param, ParamLocation, Response};
pub use redact::{is_secret_header, redact};
pub use response_body::{body, parse_json_body};
pub use sample::{SampleMembers, sample};
