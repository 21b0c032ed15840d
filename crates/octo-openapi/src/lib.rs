//! Documents that describe an HTTP API (OpenAPI 2.0, 3.0, 3.1): reading them, finding operations in them, and building
//! requests from them by parts. It sends nothing itself: the `Net` grant does.

mod accepted;
mod body;
mod credential;
mod document;
mod encode;
mod expand;
mod external;
mod fit;
mod member;
mod multipart;
mod operation;
mod pointer;
mod prose;
mod read;
mod redact;
mod reply;
mod request;
mod sample;
mod schema;
mod search;
mod servers;
mod signature;
mod style;
mod swagger;
mod tool;
mod words;

pub use credential::{Credential, Sent};
pub use document::{Document, Filled, Listed, Version};
pub use expand::Expansion;
pub use external::{Fetched, bundle};
pub use operation::{Answer, Body, Media, Operation, Param, Place};
pub use read::LARGEST;
pub use redact::{is_secret_header, redact};
pub use reply::{body, json_body};
pub use request::{Given, Request};
pub use sample::{Sampled, sample};
pub use servers::Reach;
pub use tool::ToolShape;
