//! HTTP requests for documents.

use crate::body_kind::BodyKind;
use crate::charset;
use crate::extract::extract;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use octo_toolkit::hidden_text;
use octo_toolkit::net::{NetRequest, NetResponse};
use octo_toolkit::{Net, ToolError};
use std::time::Instant;
use url::Url;

/// Sites that support it return Markdown for this.
const ACCEPT_HEADER: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, application/json;q=0.7, */*;q=0.5";

pub async fn get(net: &Net, url: Url, until: Instant, max_bytes: usize) -> Result<NetResponse, ToolError> {
    net.check_robots(&url).await?;
    let timeout = until.saturating_duration_since(Instant::now());
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(ACCEPT_HEADER))]);
    let answer = net.send(NetRequest { headers, timeout, max_bytes, ..NetRequest::get(url) }).await?;
    // A redirect may have led to another site.
    net.check_robots(&answer.url).await?;
    Ok(answer)
}

/// Error for a response with an error status.
pub fn status_error(answer: &NetResponse) -> ToolError {
    let title = extract(&decode(answer), &answer.url).title;
    let quoted_title = if title.is_empty() { String::new() } else { format!(", \"{title}\"") };
    let message = format!("The server returned {}{quoted_title}.", answer.status);
    match answer.status.as_u16() {
        404 | 410 => {
            ToolError::not_found(message).hint("Check the URL, or search for the page with web_search.")
        }
        401 | 403 => ToolError::denied(message).hint(
            "The page requires a login or blocks automated requests; try the browser, or another source.",
        ),
        _ => ToolError::unavailable(message).hint("Try again later, or get the response with fetch_url."),
    }
}

pub fn content_type(answer: &NetResponse) -> Option<&str> {
    answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok())
}

pub fn body_kind(answer: &NetResponse) -> BodyKind {
    BodyKind::detect(content_type(answer), &answer.body)
}

/// Text of a response without hidden characters.
pub fn decode(answer: &NetResponse) -> String {
    let text = charset::decode(&answer.body, content_type(answer), answer.truncated).text;
    hidden_text::strip_hidden_owned(text, &mut 0)
}
