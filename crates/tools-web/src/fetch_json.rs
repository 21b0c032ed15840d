//! `fetch_json`.

use crate::json_body::json_body;
use crate::outgoing_request;
use http::Method;
use http::header::ACCEPT;
use octo_toolkit::jq::MAX_INPUT_BYTES;
use octo_toolkit::net::{NetRequest, NetResponse};
use octo_toolkit::{
    BodySelection, CallContext, Effect, Example, JqRunner, Json, Kind, Net, Tool, ToolError, select,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Maximum size of the JSON.
const MAX_JSON_BYTES: usize = 5 << 20;

/// Fetches JSON and returns it unchanged, numbers exact; a body that is not JSON is an error that shows where parsing
/// fails and how it begins. Give jq to select from large data. Prefer fetch_url for pages, http_request for other
/// methods or headers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// URL of the data, http or https.
    url: String,
    /// jq expression, such as `.items[] | {id, name}`: reply with what it selects instead of the whole.
    #[serde(default)]
    jq: Option<String>,
    /// Seconds to wait, redirects and body included; at most 120.
    #[serde(default = "default_timeout_s")]
    timeout_s: u64,
}

fn default_timeout_s() -> u64 {
    10
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// URL of the response, after redirects.
    url: String,
    /// Status of the response; from 400 on the JSON describes the error.
    status_code: u16,
    /// The JSON value as the server sent it, or what jq selected: one value, or a list of several.
    #[schemars(with = "Value")]
    json: Json,
    /// Why jq selected nothing or was not applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

pub struct FetchJson;

impl Tool for FetchJson {
    const NAME: &'static str = "fetch_json";
    const TITLE: &'static str = "Fetch JSON";
    const KEYWORDS: &'static str = "REST API endpoint GET download data query";
    const REQUESTS: &'static [&'static str] = &[
        "get the exchange rates from this rest endpoint as data",
        "pull only the names out of a large json feed",
        "download package.json metadata from the registry url",
        "grab the api response and filter it with a jq expression",
        "read the json behind https://api.example.com/items",
        "get exact numbers from a public data api",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = (Net, JqRunner);

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Data from an API", json!({"url": "https://api.example.com/items/7"})),
            Example::new(
                "One item of many",
                json!({"url": "https://api.example.com/items", "jq": ".items[] | select(.id == 7)"}),
            ),
        ]
    }

    async fn run(
        &self,
        input: Input,
        (net, jq): (Net, JqRunner),
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let mut ask = NetRequest::get(outgoing_request::check_url(&net, &input.url)?);
        ask.timeout = outgoing_request::check_timeout(input.timeout_s, cx)?;
        ask.max_bytes = if input.jq.is_some() { MAX_INPUT_BYTES } else { MAX_JSON_BYTES };
        outgoing_request::default_header(&mut ask.headers, ACCEPT, "application/json, */*;q=0.5");
        net.check_robots(&ask.url).await?;
        let answer = outgoing_request::send(&net, ask, cx).await?;
        net.check_robots(&answer.url).await?;
        let (url, status_code) = (answer.url.to_string(), answer.status.as_u16());
        let mut notice = None;
        if let Some(program) = &input.jq {
            match select(&jq, program, &Method::GET, &answer, cx, json_body).await? {
                BodySelection::Part(part) => {
                    return Ok(Output { url, status_code, json: part.json, notice: part.notice });
                }
                BodySelection::Whole(why) => notice = Some(why),
            }
        }
        let json = outgoing_request::run_blocking(cx, move || parse_whole_body(&answer)).await??;
        Ok(Output { url, status_code, json, notice })
    }
}

fn parse_whole_body(answer: &NetResponse) -> Result<Json, ToolError> {
    if answer.truncated {
        return Err(ToolError::new(Kind::TooLarge, "The response is larger than 5 MB.")
            .hint("Select a part with jq, or request less with the API's parameters for fields or pages."));
    }
    json_body(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, StatusCode};
    use std::time::Duration;

    #[test]
    fn json_that_was_cut_is_too_large() {
        let cut = NetResponse {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            url: url::Url::parse("http://x/").unwrap(),
            body: bytes::Bytes::from_static(b"[1"),
            truncated: true,
            took: Duration::ZERO,
        };
        assert_eq!(parse_whole_body(&cut).err().map(|error| error.kind), Some(Kind::TooLarge));
    }
}
