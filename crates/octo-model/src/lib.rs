//! The words of the house: what a tool, a caller, a call and an error are.
//! No IO, no runtime, no protocol library.

mod call;
mod caller;
mod effect;
mod error;
mod json;
mod members;
mod name;
mod scan;

pub use call::{CallId, Face, Method, Op};
pub use caller::{ADMIN, Caller, DEFAULT_TENANT, Principal};
pub use effect::{Class, Effect};
pub use error::{Kind, RpcError, ToolError};
pub use json::{Fault, Json, json_len};
pub use members::Members;
pub use name::{MAX_LISTED, is_plain, listed_name, same_when_folded, with_suffix};
