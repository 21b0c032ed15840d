//! Search for tools: an index of all tools, shared by all callers, and the two tools that find and call those that are not
//! listed.

pub(crate) mod find_source;
mod found_text;
pub(crate) mod tool_index;
pub(crate) mod tool_signatures;
pub(crate) mod tool_usage;
pub(crate) mod tool_vectors;
pub(crate) mod tools_call;
pub(crate) mod tools_find;
pub(crate) mod vector_cache;
