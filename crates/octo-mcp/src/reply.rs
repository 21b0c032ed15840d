//! Errors as MCP says them. Each kind is mapped here, once.

use octo_model::{Json, JsonObject, Kind, Method, RpcError, ToolError};
use octo_wire::{Era, Revision, code};

pub fn rpc(code: i64, message: impl Into<String>) -> RpcError {
    RpcError { code, message: message.into(), data: None }
}

/// A failed tool call is a result that the model reads; everything else is a protocol error.
pub fn failed(method: Method, error: &ToolError, revision: Revision) -> Result<JsonObject, RpcError> {
    if let Some(error) = &error.rpc {
        return Err(passed_on(method, (**error).clone(), revision));
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
        .with("_meta", JsonObject::new().with("octoprox/error", described(error)))
}

/// Kind, message and hint as data.
fn described(error: &ToolError) -> JsonObject {
    let mut members = JsonObject::new().with("kind", error.kind.as_str()).with("message", &*error.message);
    if let Some(hint) = &error.hint {
        members.set("hint", &**hint);
    }
    if let Some(wait) = error.retry_after {
        members.set("retryAfterMs", Json::of(&u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)));
    }
    members
}

fn protocol_error(method: Method, error: &ToolError, revision: Revision) -> RpcError {
    let code = match error.kind {
        Kind::NotFound if method == Method::ReadResource => not_found(revision),
        Kind::Invalid | Kind::NotFound | Kind::TooLarge => code::INVALID_PARAMS,
        _ => code::INTERNAL,
    };
    RpcError { code, message: error.text(), data: Some(described(error).to_json()) }
}

/// A missing resource has a code of its own in the legacy era only; everything else passes as it came.
fn passed_on(method: Method, mut error: RpcError, revision: Revision) -> RpcError {
    if method == Method::ReadResource && error.code == code::LEGACY_NOT_FOUND {
        error.code = not_found(revision);
    }
    error
}

fn not_found(revision: Revision) -> i64 {
    match revision.era() {
        Era::Modern => code::INVALID_PARAMS,
        Era::Legacy => code::LEGACY_NOT_FOUND,
    }
}

/// The HTTP status that goes with an error in the modern era.
pub fn status(error: &RpcError) -> http::StatusCode {
    match error.code {
        code::METHOD_NOT_FOUND => http::StatusCode::NOT_FOUND,
        code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_REVISION => {
            http::StatusCode::BAD_REQUEST
        }
        code::PARSE | code::INVALID_REQUEST => http::StatusCode::BAD_REQUEST,
        _ => http::StatusCode::OK,
    }
}
