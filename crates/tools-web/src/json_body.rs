//! Parses the JSON of a response, or describes the response if it is not JSON.

use crate::body_kind::BodyKind as Body;
use crate::charset::decode;
use crate::outgoing_request;
use octo_toolkit::net::NetResponse;
use octo_toolkit::{Json, ToolError};

/// Characters of a non-JSON body that are shown.
const MAX_SHOWN_CHARS: usize = 200;

pub fn json_body(answer: &NetResponse) -> Result<Json, ToolError> {
    let content_type = outgoing_request::content_type(answer);
    if matches!(Body::detect(content_type, &answer.body), Body::Binary(_) | Body::Pdf) {
        let size = answer.body.len();
        return Err(ToolError::invalid(format!("The reply is not JSON but {size} bytes of binary content."))
            .hint("Use fetch_url to see what it is."));
    }
    let text = decode(&answer.body, content_type, false).text;
    Json::parse(text.trim().to_owned()).map_err(|fault| not_json_error(&text, fault.0, answer))
}

/// Error with the position of the syntax error, the beginning of the body and a hint.
fn not_json_error(text: &str, fault: &str, answer: &NetResponse) -> ToolError {
    let kind = outgoing_request::content_type(answer).unwrap_or("no type");
    let status = answer.status.as_u16();
    let mut removed = 0;
    let start = octo_toolkit::hidden_text::strip_hidden_owned(
        text.trim().chars().take(MAX_SHOWN_CHARS).collect(),
        &mut removed,
    );
    let place = match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Err(error) => error.to_string(),
        Ok(_) => fault.to_owned(),
    };
    let hint = match Body::detect(outgoing_request::content_type(answer), &answer.body) {
        _ if text.trim().is_empty() => "The body is empty; check the status with http_request.",
        Body::Html => {
            "This is an HTML page, perhaps a login page; read it with fetch_url, or find the URL of the API."
        }
        Body::Xml => "This is XML; read it with fetch_url, or request JSON from the service.",
        _ if place.contains("trailing characters") => {
            "The body has several JSON values; fetch them with http_request, without jq."
        }
        _ if start.starts_with(")]}'") => {
            "The JSON has an anti-hijacking prefix; fetch it with http_request, without jq."
        }
        _ => "Fetch it with fetch_url, or http_request without jq, to see it as text.",
    };
    ToolError::invalid(format!(
        "The reply (status {status}, {kind}) is not JSON: {place}. It begins: \"{start}\"."
    ))
    .hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, StatusCode};
    use std::time::Duration;

    fn answer(body: &'static [u8]) -> NetResponse {
        NetResponse {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            url: url::Url::parse("http://x/").unwrap(),
            body: bytes::Bytes::from_static(body),
            truncated: false,
            took: Duration::ZERO,
        }
    }

    #[test]
    fn numbers_stay_as_they_were_written() {
        let json =
            json_body(&answer(b"\xef\xbb\xbf {\"n\": 12345678901234567890.10, \"e\": 1e400} ")).unwrap();
        assert_eq!(json.as_str(), r#"{"n": 12345678901234567890.10, "e": 1e400}"#);
    }

    #[test]
    fn what_parsers_disagree_about_is_refused_and_named() {
        let error = json_body(&answer(br#"{"a": 1, "a": 2}"#)).err().unwrap();
        assert!(error.message.contains("a") && error.message.contains("begins"), "{error}");
        let empty = json_body(&answer(b" ")).err().unwrap();
        assert!(empty.text().contains("empty"), "{empty}");
    }
}
