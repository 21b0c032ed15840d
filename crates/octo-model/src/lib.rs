//! The words of the house: what a tool, a caller, a call and an error are.
//! No IO, no runtime, no protocol library.

mod call;
mod caller;
mod effect;
mod error;
mod json;
mod json_object;
mod name;
mod scan;

pub use call::{CallId, Frontend, Method, Operation};
pub use caller::{ADMIN, Caller, DEFAULT_TENANT, Principal};
pub use effect::{Class, Effect};
pub use error::{Kind, RpcError, ToolError};
pub use json::{JsonError, Json, json_len};
pub use json_object::JsonObject;
pub use name::{MAX_NAME_LEN, is_plain, listed_name, normalized_name, with_suffix};
