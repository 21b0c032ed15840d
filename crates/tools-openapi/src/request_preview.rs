//! Preview of a request, and headers of a response.

use http::HeaderMap;
use http::header::SET_COOKIE;
use octo_openapi::{Request, is_secret_header};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum size of a body in a dry run, in bytes.
const MAX_PREVIEW_CHARS: usize = 20_000;

#[derive(Serialize, JsonSchema)]
pub struct RequestPreview {
    /// Method of the request.
    method: String,
    /// Full URL of the request.
    url: String,
    /// Headers of the request; secrets are shown as ***.
    headers: BTreeMap<String, String>,
    /// Body of the request; binary content as its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

impl RequestPreview {
    pub fn new(request: &Request) -> Self {
        let mut masked = request.headers.clone();
        for (name, value) in masked.iter_mut() {
            if value.is_sensitive() || is_secret_header(name.as_str()) {
                *value = http::HeaderValue::from_static("***");
            }
        }
        let body = request.body.as_ref().map(|body| match std::str::from_utf8(body) {
            Ok(text) if text.len() <= MAX_PREVIEW_CHARS => text.to_owned(),
            Ok(text) => format!(
                "{}… ({} bytes)",
                text.chars().take(MAX_PREVIEW_CHARS).collect::<String>(),
                text.len()
            ),
            Err(_) => format!("{} bytes", body.len()),
        });
        Self {
            method: request.method.to_string(),
            url: request.url.to_string(),
            headers: headers(&masked),
            body,
        }
    }
}

/// Repeated headers are joined with a comma, cookies with a newline.
pub fn headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let joint = if name == SET_COOKIE { "\n" } else { ", " };
        told.entry(name.as_str().to_owned())
            .and_modify(|known| {
                known.push_str(joint);
                known.push_str(&value);
            })
            .or_insert_with(|| value.clone().into_owned());
    }
    told
}
