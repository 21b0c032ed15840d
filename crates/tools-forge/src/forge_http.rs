//! Shared HTTP code of the forges: sending, cancellation, and reading responses as untrusted data.

use http::HeaderMap;
use jiff::Timestamp;
use octo_toolkit::hidden_text::strip_hidden_owned;
use octo_toolkit::net::{NetRequest, NetResponse};
use octo_toolkit::{CallContext, Net, ToolError};
use serde_json::Value;
use std::time::Duration;

/// Maximum timeout of a caller in seconds.
const MAX_TIMEOUT_S: u64 = 120;
/// Maximum characters of a service's message in an error.
const MAX_MESSAGE_CHARS: usize = 300;

/// Sends a request; a cancelled call does not wait for the response.
pub async fn send(net: &Net, ask: NetRequest, cx: &CallContext) -> Result<NetResponse, ToolError> {
    cx.run(net.send(ask)).await?
}

pub fn timeout(seconds: u64, cx: &CallContext) -> Result<Duration, ToolError> {
    if seconds == 0 {
        return Err(ToolError::invalid("timeout_s is 0.").hint("Use 1 to 120 seconds, or omit it."));
    }
    Ok(Duration::from_secs(seconds.min(MAX_TIMEOUT_S)).min(cx.time_left()))
}

/// Removes hidden characters from every text in a value and counts them.
pub fn strip_hidden(value: &mut Value, removed: &mut usize) {
    match value {
        Value::String(text) => *text = strip_hidden_owned(std::mem::take(text), removed),
        Value::Array(items) => items.iter_mut().for_each(|item| strip_hidden(item, removed)),
        Value::Object(members) => members.values_mut().for_each(|member| strip_hidden(member, removed)),
        _ => {}
    }
}

/// The service's error message, cleaned and shortened; prefixed with a colon, or empty.
pub fn error_message(body: &[u8]) -> String {
    let Ok(said) = serde_json::from_slice::<Value>(body) else { return String::new() };
    let said = ["message", "error_description", "error"].into_iter().find_map(|name| said.get(name));
    let text = match said {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => return String::new(),
        Some(other) => other.to_string(),
    };
    let text: String = strip_hidden_owned(text, &mut 0).chars().take(MAX_MESSAGE_CHARS).collect();
    format!(": {}", text.trim())
}

/// Time of a header in seconds since 1970.
pub fn epoch_header(headers: &HeaderMap, name: &str) -> Option<Timestamp> {
    Timestamp::from_second(text(headers, name)?.parse().ok()?).ok()
}

pub fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// URL of the next page in a `Link` header.
pub fn next_link(headers: &HeaderMap) -> Option<&str> {
    let links = headers.get_all(http::header::LINK).into_iter().filter_map(|value| value.to_str().ok());
    let mut parts = links.flat_map(|links| links.split('<').skip(1)).filter_map(|part| part.split_once('>'));
    parts.find(|(_, what)| what.contains("rel=\"next\"") || what.contains("rel=next")).map(|(url, _)| url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_is_told_in_the_services_words() {
        let rows = [
            (r#"{"message": "401 Unauthorized"}"#, ": 401 Unauthorized"),
            (r#"{"error": "invalid_token", "error_description": "It was revoked."}"#, ": It was revoked."),
            (r#"{"message": {"base": ["no"]}}"#, r#": {"base":["no"]}"#),
            (r#"{"message": "a\u200bb"}"#, ": ab"),
            ("<html>", ""),
            ("{}", ""),
        ];
        for (body, expected) in rows {
            assert_eq!(error_message(body.as_bytes()), expected, "{body}");
        }
        assert_eq!(
            error_message(json!({"message": "x".repeat(5_000)}).to_string().as_bytes()).len(),
            MAX_MESSAGE_CHARS + 2
        );
    }

    #[test]
    fn the_next_page_is_found_among_the_links() {
        let rows = [
            (
                r#"<https://x/a?page=2>; rel="next", <https://x/a?page=9>; rel="last""#,
                Some("https://x/a?page=2"),
            ),
            (
                r#"<https://x/a?page=1>; rel="prev", <https://x/a?q=1,2&page=3>; rel="next""#,
                Some("https://x/a?q=1,2&page=3"),
            ),
            (r#"<https://x/a?page=1>; rel="first""#, None),
            ("nonsense", None),
        ];
        for (link, expected) in rows {
            let headers = [(http::header::LINK, link.parse().unwrap())].into_iter().collect();
            assert_eq!(next_link(&headers), expected, "{link}");
        }
    }

    #[test]
    fn hidden_text_is_taken_out_at_any_depth() {
        let mut value = json!({"a": ["x\u{200b}y", {"b": "\u{202e}z"}], "n": 1});
        let mut removed = 0;
        strip_hidden(&mut value, &mut removed);
        assert_eq!((value, removed), (json!({"a": ["xy", {"b": "z"}], "n": 1}), 2));
    }
}
