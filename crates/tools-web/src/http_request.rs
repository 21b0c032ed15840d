//! `http_request`.

use crate::body_kind::BodyKind;
use crate::charset::decode;
use crate::fetch_url::{default_max_bytes, default_true};
use crate::json_body::json_body;
use crate::outgoing_request;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use octo_toolkit::hidden_text::strip_hidden_owned;
use octo_toolkit::jq::MAX_INPUT_BYTES;
use octo_toolkit::net::{NetRequest, NetResponse};
use octo_toolkit::{
    BodySelection, CallContext, Effect, Example, JqRunner, Json, Net, Tool, ToolError, select,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use url::Url;

/// Sends an HTTP request with any method, headers and body, and returns status, headers and body unchanged; an error
/// status is a normal result. Prefer fetch_url to read pages, fetch_json for data.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Method, such as GET, POST, PUT, PATCH or DELETE.
    method: String,
    /// URL, http or https.
    url: String,
    /// Headers to send, by name.
    #[serde(default)]
    headers: Option<BTreeMap<String, String>>,
    /// Query parameters to add to the URL; an array repeats the parameter.
    #[serde(default)]
    params: Option<Map<String, Value>>,
    /// Value to send as a JSON body; excludes data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    json: Option<Json>,
    /// Text to send as the body; excludes json.
    #[serde(default)]
    data: Option<String>,
    /// Seconds to wait, redirects and body included; at most 120.
    #[serde(default = "default_timeout_s")]
    timeout_s: u64,
    /// Maximum bytes of the response body to return, up to 10 MB.
    #[serde(default = "default_max_bytes")]
    max_bytes: u64,
    /// jq expression for a JSON body, such as `.items[] | {id, name}`: reply with what it selects instead of the body.
    #[serde(default)]
    jq: Option<String>,
    /// Whether to follow redirects.
    #[serde(default = "default_true")]
    follow_redirects: bool,
}

fn default_timeout_s() -> u64 {
    20
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Status of the response.
    status_code: u16,
    /// Headers of the response, names in lower case; repeated headers are joined with a comma, cookies with a line
    /// break.
    headers: BTreeMap<String, String>,
    /// Body as text; empty for binary content and where jq selected from it.
    body: String,
    /// What jq selected: one value, or a list of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    json: Option<Json>,
    /// Milliseconds until the response was complete.
    elapsed_ms: u64,
    /// Whether the body was truncated at max_bytes.
    truncated: bool,
    /// URL of the response, after redirects.
    url: String,
    /// Notes about this response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

pub struct HttpRequest;

impl Tool for HttpRequest {
    const NAME: &'static str = "http_request";
    const TITLE: &'static str = "Send an HTTP request";
    const KEYWORDS: &'static str = "curl REST API POST PUT PATCH DELETE call endpoint webhook";
    const REQUESTS: &'static [&'static str] = &[
        "post a json body to the webhook",
        "send a DELETE to the rest endpoint",
        "call the api with a bearer token header",
        "put an updated record to https://api.example.com/items/7",
        "see status code and response headers of an endpoint",
        "trigger the deploy hook with a POST",
        "patch a resource over http with custom headers",
    ];
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = (Net, JqRunner);

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "Create something with a JSON body",
                json!({"method": "POST", "url": "https://api.example.com/items", "json": {"name": "pen"}}),
            ),
            Example::new(
                "Query with parameters",
                json!({"method": "GET", "url": "https://api.example.com/items", "params": {"tag": ["a", "b"], "page": 2}}),
            ),
        ]
    }

    async fn run(
        &self,
        mut input: Input,
        (net, jq): (Net, JqRunner),
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let program = input.jq.take();
        let mut request = build_request(input, &net, cx)?;
        let (method, most) = (request.method.clone(), request.max_bytes);
        if program.is_some() {
            request.max_bytes = MAX_INPUT_BYTES;
        }
        let mut answer = outgoing_request::send(&net, request, cx).await?;
        let mut notice = None;
        if let Some(program) = program {
            match select(&jq, &program, &method, &answer, cx, json_body).await? {
                BodySelection::Part(part) => {
                    answer.body = Bytes::new();
                    return Ok(Output {
                        json: Some(part.json),
                        notice: part.notice,
                        ..build_output(&answer)
                    });
                }
                BodySelection::Whole(why) => notice = Some(why),
            }
            answer.truncated |= answer.body.len() > most;
            answer.body.truncate(most);
        }
        let mut output = outgoing_request::run_blocking(cx, move || build_output(&answer)).await?;
        output.notice = outgoing_request::join_notices([notice, output.notice]);
        Ok(output)
    }
}

fn build_request(input: Input, net: &Net, cx: &CallContext) -> Result<NetRequest, ToolError> {
    let mut url = outgoing_request::check_url(net, &input.url)?;
    if let Some(params) = &input.params {
        add_params(&mut url, params)?;
    }
    let mut headers = outgoing_request::parse_headers(input.headers)?;
    let body = match (input.json, input.data) {
        (Some(_), Some(_)) => {
            return Err(ToolError::invalid("json and data are mutually exclusive.").hint("Use one of them."));
        }
        (Some(json), None) => {
            outgoing_request::default_header(&mut headers, CONTENT_TYPE, "application/json");
            Some(json.bytes().to_vec())
        }
        (None, Some(data)) => {
            outgoing_request::default_header(&mut headers, CONTENT_TYPE, "text/plain; charset=utf-8");
            Some(data.into_bytes())
        }
        (None, None) => None,
    };
    Ok(NetRequest {
        method: outgoing_request::parse_method(&input.method)?,
        headers,
        body: body.map(outgoing_request::check_body).transpose()?,
        timeout: outgoing_request::check_timeout(input.timeout_s, cx)?,
        max_bytes: outgoing_request::check_max_bytes(input.max_bytes)?,
        max_redirects: outgoing_request::redirect_limit(input.follow_redirects),
        ..NetRequest::get(url)
    })
}

/// Adds parameters to those of the URL.
fn add_params(url: &mut Url, params: &Map<String, Value>) -> Result<(), ToolError> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for (name, value) in params {
        match value {
            Value::Null => {}
            Value::Array(values) => {
                for value in values {
                    pairs.push((name, param_text(name, value)?));
                }
            }
            value => pairs.push((name, param_text(name, value)?)),
        }
    }
    if !pairs.is_empty() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
    Ok(())
}

fn param_text(name: &str, value: &Value) -> Result<String, ToolError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(truth) => Ok(truth.to_string()),
        _ => Err(ToolError::invalid(format!("The parameter `{name}` is not a plain value.")).hint(
            "Use a string, a number, true or false, or an array of these; encode nested values as JSON text.",
        )),
    }
}

fn build_output(answer: &NetResponse) -> Output {
    let content_type = outgoing_request::content_type(answer);
    let (body, notice) = match BodyKind::detect(content_type, &answer.body) {
        BodyKind::Pdf | BodyKind::Binary(_) if !answer.body.is_empty() => {
            let kind = content_type.unwrap_or("unknown type");
            let size = answer.body.len();
            (String::new(), Some(format!("The body is binary ({kind}, {size} bytes) and was omitted.")))
        }
        _ => {
            let mut removed = 0;
            let text =
                strip_hidden_owned(decode(&answer.body, content_type, answer.truncated).text, &mut removed);
            (text, (removed > 0).then(|| format!("Invisible characters removed: {removed}.")))
        }
    };
    let notice = outgoing_request::join_notices([outgoing_request::truncation_notice(answer), notice]);
    Output {
        status_code: answer.status.as_u16(),
        headers: join_headers(&answer.headers),
        body,
        json: None,
        elapsed_ms: u64::try_from(answer.took.as_millis()).unwrap_or(u64::MAX),
        truncated: answer.truncated,
        url: answer.url.to_string(),
        notice,
    }
}

fn join_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let joint = if name == http::header::SET_COOKIE { "\n" } else { ", " };
        joined
            .entry(name.as_str().to_owned())
            .and_modify(|known| {
                known.push_str(joint);
                known.push_str(&value);
            })
            .or_insert_with(|| value.clone().into_owned());
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_added_as_the_url_wants_them() {
        let rows = [
            (json!({}), "http://x/?a=1"),
            (
                json!({"q": "a b&c=d/ü", "n": 1.5, "t": true, "none": null}),
                "http://x/?a=1&q=a+b%26c%3Dd%2F%C3%BC&n=1.5&t=true",
            ),
            (json!({"tag": ["x", 2]}), "http://x/?a=1&tag=x&tag=2"),
        ];
        for (params, expected) in rows {
            let mut url = Url::parse("http://x/?a=1").unwrap();
            add_params(&mut url, params.as_object().unwrap()).unwrap();
            assert_eq!(url.as_str(), expected);
        }
        let mut url = Url::parse("http://x/").unwrap();
        assert!(add_params(&mut url, json!({"a": {"b": 1}}).as_object().unwrap()).is_err());
        add_params(&mut url, json!({"a": null}).as_object().unwrap()).unwrap();
        assert_eq!(url.as_str(), "http://x/");
    }
}
