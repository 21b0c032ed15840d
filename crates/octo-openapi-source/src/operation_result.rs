//! Converts an API's response to a tool result.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::CONTENT_TYPE;
use octo_grants::net::NetResponse;
use octo_model::{Json, JsonObject, Kind, ToolError};
use octo_toolkit::Image;
use octo_toolkit::hidden_text::strip_hidden;
use std::time::Duration;

/// Maximum characters of an error in a message.
const MAX_ERROR_CHARS: usize = 400;
/// Maximum size of an image, in bytes.
const MAX_IMAGE_BYTES: usize = 5 << 20;
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Returns the result, or an error if the caller has to act first. Other error statuses are failed results.
pub(crate) fn tool_result(
    server: &str,
    answer: NetResponse,
    pictures: bool,
) -> Result<JsonObject, ToolError> {
    let status = answer.status.as_u16();
    let pause = answer.retry_after().filter(|pause| status != 403 || !pause.is_zero());
    match (status, pause) {
        (403 | 429 | 503, Some(pause)) => return Err(overloaded_error(server, &answer).retry_after(pause)),
        (429, None) => return Err(overloaded_error(server, &answer).retry_after(Duration::from_secs(5))),
        (401 | 403, None) => return Err(unauthorized_error(server, &answer)),
        _ => {}
    }
    let failed = answer.status.is_client_error() || answer.status.is_server_error();
    if pictures
        && !failed
        && let Some(picture) = image(&answer)
    {
        let about = JsonObject::new().with("status", Json::of(&status)).to_json();
        return Ok(JsonObject::new()
            .with("content", Json::array(&[picture.to_content_block(), block(about.as_str())]))
            .with("isError", false));
    }
    let mut structure =
        JsonObject::new().with("status", Json::of(&status)).with("body", octo_openapi::body(&answer));
    if answer.truncated {
        structure.set("truncated", true);
    }
    let structure = structure.to_json();
    Ok(JsonObject::new()
        .with("content", Json::array(&[block(structure.as_str())]))
        .with("structuredContent", structure)
        .with("isError", failed))
}

fn block(text: &str) -> Json {
    JsonObject::new().with("type", "text").with("text", text).to_json()
}

fn image(answer: &NetResponse) -> Option<Image> {
    let kind = answer.headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let mime = IMAGE_TYPES.into_iter().find(|known| kind.starts_with(known))?;
    let fits = !answer.truncated && answer.body.len() <= MAX_IMAGE_BYTES;
    fits.then(|| Image { mime, base64: STANDARD.encode(&answer.body) })
}

fn overloaded_error(server: &str, answer: &NetResponse) -> ToolError {
    let status = answer.status.as_u16();
    let kind = if status == 503 { Kind::Unavailable } else { Kind::RateLimited };
    ToolError::new(
        kind,
        format!("{server} is unavailable or rate limiting ({status}){}", error_excerpt(answer)),
    )
    .hint("Retry after the given time, and call less often.")
}

fn unauthorized_error(server: &str, answer: &NetResponse) -> ToolError {
    let status = answer.status.as_u16();
    let what = if status == 401 { "needs a valid key" } else { "does not allow this with its key" };
    ToolError::new(Kind::Unauthorized, format!("{server} {what} ({status}){}", error_excerpt(answer))).hint(
        format!("Ask the operator to check `auth` or `headers` of the server {server} in the settings."),
    )
}

/// Excerpt of the API's error text.
fn error_excerpt(answer: &NetResponse) -> String {
    let body = octo_openapi::body(answer);
    if body.is_null() {
        return ".".to_owned();
    }
    let text = body.to_text().unwrap_or_else(|| body.as_str().to_owned());
    let text = strip_hidden(&text).text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = text.chars().take(MAX_ERROR_CHARS).collect();
    format!(": {short}")
}
