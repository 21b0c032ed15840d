//! Client for a configured language model with an OpenAI-compatible API.

use crate::net::{NetRequest, NetResponse, secret_header};
use crate::{Capabilities, Grant, Net};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use octo_model::{Remedy, Secret, ToolError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// Address and credentials of the model.
pub struct LlmSpec {
    /// Base URL including the version: `https://api.example.com/v1`.
    pub url: Url,
    pub key: Option<Secret>,
    pub model: String,
}

/// Queries the configured language model.
#[derive(Clone)]
pub struct Llm(Arc<LlmState>);

struct LlmState {
    net: Net,
    endpoint: Url,
    key: Option<HeaderValue>,
    model: String,
}

impl Llm {
    pub fn new(net: Net, spec: LlmSpec) -> Result<Self, ToolError> {
        let mut endpoint = spec.url;
        endpoint
            .path_segments_mut()
            .map_err(|()| ToolError::invalid("The address of the language model is not an HTTP URL."))?
            .pop_if_empty()
            .extend(["chat", "completions"]);
        let key = spec.key.map(|key| {
            secret_header("Bearer ", &key).ok_or_else(|| {
                ToolError::invalid(
                    "The language model's key contains characters that are not allowed in a header.",
                )
            })
        });
        Ok(Self(Arc::new(LlmState { net, endpoint, key: key.transpose()?, model: spec.model })))
    }

    /// Returns the model's answer to one question under a system prompt.
    pub async fn ask(
        &self,
        instruction: &str,
        question: &str,
        max_tokens: u64,
        timeout: Duration,
    ) -> Result<String, ToolError> {
        let body = json!({
            "model": self.0.model,
            "messages": [{"role": "system", "content": instruction}, {"role": "user", "content": question}],
            "max_tokens": max_tokens,
            "stream": false,
        });
        let mut ask = NetRequest::get(self.0.endpoint.clone());
        ask.method = Method::POST;
        ask.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.0.key {
            ask.headers.insert(AUTHORIZATION, key.clone());
        }
        ask.body = Some(Bytes::from(body.to_string()));
        ask.timeout = timeout;
        ask.max_bytes = MAX_RESPONSE_BYTES;
        // The model's address is fixed; following a redirect would send the question elsewhere.
        ask.max_redirects = 0;
        let answer = self.0.net.send(ask).await?;
        if answer.status.is_success() { reply_text(&answer) } else { Err(status_error(&answer)) }
    }
}

impl Grant for Llm {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open().map_err(|_: ToolError| {
            ToolError::unavailable("No language model is set.")
                .hint("Ask the operator to set llm.url, llm.model and, if required, llm.key.")
                .remedy(Remedy::settings(&["llm.url", "llm.model", "llm.key"]))
        })
    }
}

fn reply_text(answer: &NetResponse) -> Result<String, ToolError> {
    let value: Value =
        serde_json::from_slice(&answer.body).map_err(|error| no_text_error().detail(error.to_string()))?;
    let text = value.pointer("/choices/0/message/content").and_then(Value::as_str).map(str::trim);
    match text.filter(|text| !text.is_empty()) {
        Some(text) => Ok(text.to_owned()),
        None => Err(no_text_error().detail("no text in choices[0].message.content")),
    }
}

fn no_text_error() -> ToolError {
    ToolError::unavailable("The language model returned no text.")
        .hint("Try again; ask the operator to check llm.url and llm.model if it persists.")
        .remedy(Remedy::settings(&["llm.url", "llm.model"]))
}

/// Includes the service's message, which shows whether the key, the model or the quota is at fault.
fn status_error(answer: &NetResponse) -> ToolError {
    let said = serde_json::from_slice::<Value>(&answer.body).ok();
    let words = said
        .as_ref()
        .and_then(|value| value.pointer("/error/message").or_else(|| value.pointer("/message")))
        .and_then(Value::as_str)
        .map(|text| format!(": {}", text.chars().take(300).collect::<String>()))
        .unwrap_or_default();
    let error = ToolError::unavailable(format!(
        "The language model returned status {}{words}",
        answer.status.as_u16()
    ));
    match answer.status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            error.hint("Ask the operator to check llm.key.").remedy(Remedy::settings(&["llm.key"]))
        }
        StatusCode::NOT_FOUND => error
            .hint("Ask the operator to check llm.url and llm.model.")
            .remedy(Remedy::settings(&["llm.url", "llm.model"])),
        StatusCode::TOO_MANY_REQUESTS => answer.rate_limited(error.message, Duration::from_secs(10)),
        StatusCode::SERVICE_UNAVAILABLE => {
            let wait = answer.retry_after().unwrap_or(Duration::from_secs(10));
            error.hint(format!("Try again in {} s.", wait.as_secs())).retry_after(wait)
        }
        _ => error.hint("Try again later, or with a shorter text."),
    }
}
