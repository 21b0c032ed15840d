//! Failures as HTTP answers: one status per kind, one shape of body.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use octo_model::{Json, JsonObject, Kind, ToolError};
use std::time::Duration;

/// Suggested when a target is unavailable and nobody knows for how long.
const RETRY: Duration = Duration::from_secs(1);

/// The HTTP status of each kind.
pub fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::Invalid => StatusCode::BAD_REQUEST,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::Denied => StatusCode::FORBIDDEN,
        Kind::Conflict => StatusCode::CONFLICT,
        Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Kind::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
        Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Unauthorized => StatusCode::UNAUTHORIZED,
        Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        Kind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
    }
}

/// The member `error` of a reply.
pub fn error_object(error: &ToolError) -> JsonObject {
    let members = described(error.kind.as_str(), &error.message, error.hint.as_deref());
    match wait(error) {
        Some(seconds) => members.with("retry_after_s", Json::of(&seconds)),
        None => members,
    }
}

/// An error in three words: what it is, what happened, what to do.
pub fn described(kind: &str, message: &str, hint: Option<&str>) -> JsonObject {
    JsonObject::new()
        .with("kind", kind)
        .with("message", message)
        .with("hint", hint.map_or_else(Json::null, Json::text))
}

/// Whole seconds until it is worth trying again.
fn wait(error: &ToolError) -> Option<u64> {
    let is_passing = matches!(error.kind, Kind::Unavailable | Kind::RateLimited);
    let known = error.retry_after.or_else(|| is_passing.then_some(RETRY))?;
    Some(known.as_secs() + u64::from(known.subsec_nanos() > 0))
}

/// Status and headers that follow from an error.
pub fn mark(response: &mut Response, error: &ToolError) {
    *response.status_mut() = status(error.kind);
    if let Some(seconds) = wait(error) {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    if error.kind == Kind::Unauthorized {
        let challenge = HeaderValue::from_static("Bearer realm=\"upstream\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
}

/// The answer to a request that never became a call.
pub fn failure(error: &ToolError) -> Response {
    let mut response = json(body(error_object(error)));
    mark(&mut response, error);
    response
}

/// `{"success": false, "error": …}`.
pub fn body(error: JsonObject) -> Json {
    JsonObject::new().with("success", false).with("error", error).to_json()
}

/// JSON with status 200.
pub fn json(body: Json) -> Response {
    let mut response = Response::new(Body::from(body.bytes().clone()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_status() {
        let codes: Vec<u16> = Kind::ALL.iter().map(|kind| status(*kind).as_u16()).collect();
        assert_eq!(codes, [400, 404, 403, 409, 413, 504, 499, 503, 401, 500, 429]);
    }

    #[test]
    fn says_when_to_try_again_in_whole_seconds() {
        let error = ToolError::unavailable("Busy.").retry_after(Duration::from_millis(1_200));
        let response = failure(&error);
        assert_eq!(response.headers().get("retry-after").unwrap(), "2");
        assert!(error_object(&error).to_json().as_str().ends_with(r#""hint":null,"retry_after_s":2}"#));
        assert_eq!(failure(&ToolError::unavailable("Gone.")).headers().get("retry-after").unwrap(), "1");
        assert!(failure(&ToolError::invalid("No.")).headers().get("retry-after").is_none());
    }
}
