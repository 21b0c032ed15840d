//! Error responses: one status per kind, one format.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use octo_model::{Json, JsonObject, Kind, ToolError};

/// HTTP status of each kind.
pub fn http_status(kind: Kind) -> StatusCode {
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

/// Member `error` of a reply.
pub fn error_object(error: &ToolError) -> JsonObject {
    let members = error_fields(error.kind.as_str(), &error.message, error.hint.as_deref());
    let members = match retry_after_seconds(error) {
        Some(seconds) => members.with("retry_after_s", Json::of(&seconds)),
        None => members,
    };
    if error.is_outcome_unknown { members.with("outcome_unknown", true) } else { members }
}

/// Error with kind, message and hint.
pub fn error_fields(kind: &str, message: &str, hint: Option<&str>) -> JsonObject {
    JsonObject::new()
        .with("kind", kind)
        .with("message", message)
        .with("hint", hint.map_or_else(Json::null, Json::text))
}

/// Whole seconds until a retry.
fn retry_after_seconds(error: &ToolError) -> Option<u64> {
    let delay = error.retry_delay()?;
    Some(delay.as_secs() + u64::from(delay.subsec_nanos() > 0))
}

/// Sets the status and headers of an error.
pub fn set_error_status(response: &mut Response, error: &ToolError) {
    *response.status_mut() = http_status(error.kind);
    if let Some(seconds) = retry_after_seconds(error) {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    if error.kind == Kind::Unauthorized {
        let challenge = HeaderValue::from_static("Bearer realm=\"upstream\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
}

/// Response to a request that never became a call.
pub fn error_response(error: &ToolError) -> Response {
    let mut response = json_response(failure_body(error_object(error)));
    set_error_status(&mut response, error);
    response
}

/// `{"success": false, "error": …}`.
pub fn failure_body(error: JsonObject) -> Json {
    JsonObject::new().with("success", false).with("error", error).to_json()
}

/// JSON with status 200.
pub fn json_response(body: Json) -> Response {
    let mut response = Response::new(Body::from(body.bytes().clone()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_kind_has_its_status() {
        let codes: Vec<u16> = Kind::ALL.iter().map(|kind| http_status(*kind).as_u16()).collect();
        assert_eq!(codes, [400, 404, 403, 409, 413, 504, 499, 503, 401, 500, 429]);
    }

    #[test]
    fn says_when_to_try_again_in_whole_seconds() {
        let error = ToolError::unavailable("Busy.").retry_after(Duration::from_millis(1_200));
        let response = error_response(&error);
        assert_eq!(response.headers().get("retry-after").unwrap(), "2");
        assert!(error_object(&error).to_json().as_str().ends_with(r#""hint":null,"retry_after_s":2}"#));
        assert_eq!(
            error_response(&ToolError::unavailable("Gone.")).headers().get("retry-after").unwrap(),
            "1"
        );
        assert!(error_response(&ToolError::invalid("No.")).headers().get("retry-after").is_none());
        let lost = ToolError::unavailable("Lost.").with_unknown_outcome();
        assert!(error_response(&lost).headers().get("retry-after").is_none());
        assert!(error_object(&lost).to_json().as_str().ends_with(r#""hint":null,"outcome_unknown":true}"#));
    }
}
