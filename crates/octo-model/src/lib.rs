//! The words of the house: what a tool, a caller, a call and an error are.
//! No IO, no runtime, no protocol library.

mod operation;
mod caller;
mod effect;
mod error;
mod json;
mod json_object;
mod item_name;
mod json_scan;

pub use operation::{CallId, Frontend, Method, Operation};
pub use caller::{ADMIN, Caller, DEFAULT_TENANT, Principal};
pub use effect::{EffectClass, Effect};
pub use error::{Kind, RpcError, ToolError};
pub use json::{JsonError, Json, json_len};
pub use json_object::JsonObject;
pub use item_name::{MAX_NAME_LEN, is_valid_name, listed_name, normalized_name, with_suffix};
