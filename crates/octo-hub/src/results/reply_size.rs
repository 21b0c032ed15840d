//! How large a reply may be.

use crate::catalogue::item::Item;
use crate::pipeline::call_request::Request;
use crate::pipeline::policy::Obligations;
use crate::results::result_limit::ResultLimits;
use octo_model::{Frontend, Json, JsonObject, Method, Operation};

/// The `_meta` member of a request with the bytes of content that the client wants at most.
const MAX_BYTES_META_KEY: &str = "octoprox/max_bytes";
/// The least that a client may ask for.
const MIN_REPLY_BYTES: usize = 1_000;
/// Parameters by which callers of native tools say how much they want.
const SIZE_PARAMETERS: [&str; 18] = [
    "bytes",
    "end_line",
    "head",
    "limit",
    "lines",
    "max_bytes",
    "max_chars",
    "max_count",
    "max_hunks",
    "max_observations",
    "max_output_bytes",
    "max_response_bytes",
    "max_results",
    "max_rows",
    "max_tables",
    "max_tokens",
    "num_results",
    "tail",
];

/// Bytes of content that a reply may have.
pub fn max_reply_bytes(
    limits: &ResultLimits,
    request: &Request,
    op: &Operation,
    item: &Item,
    obligations: &Obligations,
) -> usize {
    let allowed = if op.method != Method::CallTool || request.from_app || !item.app.is_for_model {
        // No model reads it, and an app cannot read the rest.
        limits.max_resource_bytes
    } else if request.depth > 0 || !matches!(request.frontend, Frontend::Stdio | Frontend::Http) {
        limits.max_bytes
    } else if let Some(wanted) = wanted_bytes(&op.params) {
        wanted.clamp(MIN_REPLY_BYTES, limits.max_bytes.max(MIN_REPLY_BYTES))
    } else if item.source.is_native() && names_a_size(op.params.get("arguments")) {
        limits.max_bytes
    } else if item.is_reader() {
        limits.read_bytes.min(limits.max_bytes)
    } else {
        limits.inline_bytes.min(limits.max_bytes)
    };
    obligations.max_result_bytes.map_or(allowed, |most| most.min(allowed))
}

fn wanted_bytes(params: &JsonObject) -> Option<usize> {
    params.inner("_meta", MAX_BYTES_META_KEY)?.to().ok()
}

fn names_a_size(arguments: Option<&Json>) -> bool {
    let arguments = arguments.and_then(|arguments| arguments.members().ok()).unwrap_or_default();
    SIZE_PARAMETERS.iter().any(|name| arguments.get(name).is_some_and(|value| value.as_str() != "null"))
}
