//! Mapping of errors to MCP. Each kind is mapped here only.

use octo_model::{Json, JsonObject, Kind, Method, RpcError, ToolError};
use octo_wire::{Era, Revision, code};

pub fn rpc_error(code: i64, message: impl Into<String>) -> RpcError {
    RpcError { code, message: message.into(), data: None }
}

/// A failed tool call is a result that the model reads; everything else is a protocol error.
pub fn map_error(method: Method, error: &ToolError, revision: Revision) -> Result<JsonObject, RpcError> {
    if let Some(error) = &error.rpc {
        return Err(passthrough_error(method, (**error).clone(), revision));
    }
    match method {
        Method::CallTool => Ok(error_result(error)),
        _ => Err(protocol_error(method, error, revision)),
    }
}

fn error_result(error: &ToolError) -> JsonObject {
    let text = JsonObject::new().with("type", "text").with("text", error.text().as_str());
    JsonObject::new()
        .with("content", Json::array([&text.to_json()]))
        .with("isError", true)
        .with("_meta", JsonObject::new().with("octoprox/error", error_data(error)))
}

/// Kind, message and hint as data.
fn error_data(error: &ToolError) -> JsonObject {
    let mut members = JsonObject::new().with("kind", error.kind.as_str()).with("message", &*error.message);
    if let Some(hint) = &error.hint {
        members.set("hint", &**hint);
    }
    if let Some(wait) = error.retry_delay() {
        members.set("retryAfterMs", Json::of(&u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)));
    }
    if error.is_outcome_unknown {
        members.set("outcomeUnknown", true);
    }
    members
}

fn protocol_error(method: Method, error: &ToolError, revision: Revision) -> RpcError {
    let code = match error.kind {
        Kind::NotFound if method == Method::ReadResource => not_found_code(revision),
        Kind::Invalid | Kind::NotFound | Kind::TooLarge => code::INVALID_PARAMS,
        _ => code::INTERNAL,
    };
    RpcError { code, message: error.text(), data: Some(error_data(error).to_json()) }
}

/// A missing resource has its own code in the legacy era only; everything else passes unchanged.
fn passthrough_error(method: Method, mut error: RpcError, revision: Revision) -> RpcError {
    if method == Method::ReadResource && error.code == code::LEGACY_NOT_FOUND {
        error.code = not_found_code(revision);
    }
    error
}

fn not_found_code(revision: Revision) -> i64 {
    match revision.era() {
        Era::Modern => code::INVALID_PARAMS,
        Era::Legacy => code::LEGACY_NOT_FOUND,
    }
}

/// HTTP status for an error in the modern era.
pub fn http_status(error: &RpcError) -> http::StatusCode {
    match error.code {
        code::METHOD_NOT_FOUND => http::StatusCode::NOT_FOUND,
        code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_REVISION => {
            http::StatusCode::BAD_REQUEST
        }
        code::PARSE | code::INVALID_REQUEST => http::StatusCode::BAD_REQUEST,
        _ => http::StatusCode::OK,
    }
}
