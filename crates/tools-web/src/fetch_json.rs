//! `fetch_json`.

use crate::asking;
use crate::charset::decode;
use crate::kind::Kind as Body;
use http::header::ACCEPT;
use octo_toolkit::net::{Answer, Ask};
use octo_toolkit::{Cx, Effect, Example, Json, Kind, Net, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Bytes of JSON that are taken.
const LARGEST: usize = 5 << 20;
/// Characters that are shown of what is no JSON.
const SHOWN: usize = 200;

/// Fetches JSON and gives it as it is, numbers exact; what is no JSON is an error that shows where it breaks and how it
/// begins. Prefer fetch_url for pages, http_request for other methods or headers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Address of the data, http or https.
    url: String,
    /// Seconds to wait, redirects and body included; at most 120.
    #[serde(default = "ten")]
    timeout_s: u64,
}

fn ten() -> u64 {
    10
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Where the answer came from, after redirects.
    url: String,
    /// Status of the answer; from 400 on the JSON describes the error.
    status_code: u16,
    /// The JSON value as the server sent it.
    #[schemars(with = "Value")]
    json: Json,
}

pub struct FetchJson;

impl Tool for FetchJson {
    const NAME: &'static str = "fetch_json";
    const TITLE: &'static str = "Fetch JSON";
    const EFFECT: Effect = Effect::reads().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Net;

    fn examples() -> Vec<Example> {
        vec![Example::new("Data of an API", json!({"url": "https://api.example.com/items/7"}))]
    }

    async fn run(&self, input: Input, net: Net, cx: &Cx) -> Result<Output, ToolError> {
        let mut ask = Ask::get(asking::url(&net, &input.url)?);
        ask.timeout = asking::timeout(input.timeout_s, cx)?;
        ask.max_bytes = LARGEST;
        asking::default_header(&mut ask.headers, ACCEPT, "application/json, */*;q=0.5");
        net.may_fetch(&ask.url).await?;
        let answer = asking::send(&net, ask, cx).await?;
        net.may_fetch(&answer.url).await?;
        asking::beside(cx, move || parsed(&answer)).await?
    }
}

fn parsed(answer: &Answer) -> Result<Output, ToolError> {
    if answer.truncated {
        return Err(ToolError::new(Kind::TooLarge, "The answer is larger than 5 MB.")
            .hint("Ask the service for less, with its parameters for fields or pages."));
    }
    let content_type = asking::content_type(answer);
    if matches!(Body::of(content_type, &answer.body), Body::Binary(_) | Body::Pdf) {
        let size = answer.body.len();
        return Err(ToolError::invalid(format!("The answer is no JSON but {size} bytes of binary content."))
            .hint("Use fetch_url to see what it is."));
    }
    let text = decode(&answer.body, content_type, false).text;
    let json = Json::parse(text.trim().to_owned()).map_err(|fault| refused(&text, fault.0, answer))?;
    Ok(Output { url: answer.url.to_string(), status_code: answer.status.as_u16(), json })
}

/// Says where the JSON breaks, what came instead and what to do.
fn refused(text: &str, fault: &str, answer: &Answer) -> ToolError {
    let kind = asking::content_type(answer).unwrap_or("no type");
    let status = answer.status.as_u16();
    let mut removed = 0;
    let start = octo_toolkit::hidden::cleaned(text.trim().chars().take(SHOWN).collect(), &mut removed);
    let place = match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Err(error) => error.to_string(),
        Ok(_) => fault.to_owned(),
    };
    let hint = match Body::of(asking::content_type(answer), &answer.body) {
        _ if text.trim().is_empty() => "The body is empty; look at the status with http_request.",
        Body::Html => {
            "This is a page, perhaps one to log in; read it with fetch_url, or look for the address of the API."
        }
        Body::Xml => "This is XML; read it with fetch_url, or ask the service for JSON.",
        _ if place.contains("trailing characters") => {
            "Several values follow each other; fetch them with http_request."
        }
        _ if start.starts_with(")]}'") => {
            "The JSON follows a guard at the start; fetch it with http_request."
        }
        _ => "Fetch it with fetch_url or http_request to see it as text.",
    };
    ToolError::invalid(format!(
        "The answer (status {status}, {kind}) is no JSON: {place}. It begins: \"{start}\"."
    ))
    .hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, StatusCode};
    use std::time::Duration;

    fn answer(body: &'static [u8]) -> Answer {
        Answer {
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
        let output =
            parsed(&answer(b"\xef\xbb\xbf {\"n\": 12345678901234567890.10, \"e\": 1e400} ")).unwrap();
        assert_eq!(output.json.as_str(), r#"{"n": 12345678901234567890.10, "e": 1e400}"#);
    }

    #[test]
    fn json_that_was_cut_is_too_large() {
        let cut = Answer { truncated: true, ..answer(b"[1") };
        assert_eq!(parsed(&cut).err().map(|error| error.kind), Some(Kind::TooLarge));
    }

    #[test]
    fn what_parsers_disagree_about_is_refused_and_named() {
        let error = parsed(&answer(br#"{"a": 1, "a": 2}"#)).err().unwrap();
        assert!(error.message.contains("a") && error.message.contains("begins"), "{error}");
        let empty = parsed(&answer(b" ")).err().unwrap();
        assert!(empty.text().contains("empty"), "{empty}");
    }
}
