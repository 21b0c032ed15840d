//! Domain types: tools, callers, calls and errors. No I/O, no async runtime, no protocol library.

mod abbreviate;
mod caller;
mod digest;
mod effect;
mod error;
pub mod extension;
mod item_kind;
mod item_name;
mod json;
mod json_object;
mod json_scan;
mod operation;
mod quote_numbers;
mod remedy;
mod secret;
mod suggest;
mod template;
#[cfg(test)]
mod wire_test;

pub use abbreviate::abbreviate;
pub use caller::{ADMIN, Caller, DEFAULT_TENANT, LOCAL_SUBJECT, Principal};
pub use digest::{hex, sha256_hex};
pub use effect::{Effect, EffectClass, EffectOrigin};
pub use error::{DEFAULT_RETRY_AFTER, Kind, RpcError, ToolError};
pub use item_kind::ItemKind;
pub use item_name::{MAX_NAME_LEN, is_valid_name, listed_name, normalized_name, with_suffix};
pub use json::{Json, JsonError, json_len};
pub use json_object::JsonObject;
pub use operation::{CallId, Frontend, Method, Operation, RecordedMethod, ServerRequest};
pub use quote_numbers::quote_numbers;
pub use remedy::{Remedy, RemedyText};
pub use secret::{MASK, Secret, exposed_secret};
pub use suggest::{edit_distance, nearest};
pub use template::{TemplatePart, scan_template};

/// A boxed future: the return type of asynchronous methods behind `dyn`.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
