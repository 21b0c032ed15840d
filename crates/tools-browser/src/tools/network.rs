//! `browser_network`.

use crate::browser_sessions::{ActiveSession, BrowserSessions};
use crate::engine::{Request, RequestBodies, ResponseBody};
use crate::sanitize;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError, secrets};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Requests of one answer.
const MAX_REQUESTS: usize = 50;
/// Letters of a body.
const MAX_BODY_CHARS: usize = 20_000;

/// Lists the newest requests that the page has made, each with a number, status, size and why it failed, or shows one of them with
/// the bodies that were sent and received. Credentials are masked. Prefer browser_console for errors of scripts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only requests that failed or were answered with 400 or more.
    #[serde(default)]
    failed_only: bool,
    /// Only addresses with this text in them.
    #[serde(default)]
    url: Option<String>,
    /// Only what came after this number, from an earlier answer.
    #[serde(default)]
    after: u64,
    /// Number of one request, to see its bodies.
    #[serde(default)]
    request: Option<u64>,
    /// The session, when it has a name.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Number, method, address, kind and outcome of each, the oldest first.
    requests: Vec<String>,
    /// Give it as after to get only newer ones.
    last: u64,
    /// True when older requests, or ends of bodies, were left out.
    truncated: bool,
    /// How much was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// Body of the one request, when it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_body: Option<String>,
    /// Body of its answer, when the browser still has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response_body: Option<String>,
}

pub struct Network(pub BrowserSessions);

impl Tool for Network {
    const NAME: &'static str = "browser_network";
    const TITLE: &'static str = "List the page's requests";
    const EFFECT: Effect = Effect::reads_volatile().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("What failed", json!({"failed_only": true})),
            Example::new("One request with its bodies", json!({"request": 12})),
        ]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<Output, ToolError> {
        let active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        if let Some(number) = input.request {
            return show_request(&active, number).await;
        }
        let mut all = active.page.requests(input.after);
        let last = all.last().map_or(input.after, |request| request.serial);
        all.retain(|request| {
            let failed = request.error.is_some() || request.status.is_some_and(|status| status >= 400);
            let named = input.url.as_ref().is_none_or(|url| request.url.contains(url.as_str()));
            (failed || !input.failed_only) && named
        });
        let older = all.len().saturating_sub(MAX_REQUESTS);
        let requests = all.iter().skip(older).map(format_request).collect();
        let note = (older > 0).then(|| format!("{older} older requests are not listed; narrow it with url."));
        Ok(Output { requests, last, truncated: older > 0, note, request_body: None, response_body: None })
    }
}

/// A request in a line.
fn format_request(request: &Request) -> String {
    let outcome = match (&request.error, request.status) {
        (Some(why), _) => format!("failed: {}", sanitize::truncate(&sanitize::single_line(why), 120)),
        (None, Some(status)) => format!("{status}, {} bytes", request.bytes),
        (None, None) => "no answer yet".to_owned(),
    };
    let url = secrets::mask(&request.url).into_owned();
    let url = sanitize::truncate(&sanitize::single_line(&url), 200);
    format!("#{} {} {url} ({}): {outcome}", request.serial, request.method, request.kind)
}

/// One request with its bodies.
async fn show_request(active: &ActiveSession, number: u64) -> Result<Output, ToolError> {
    let all = active.page.requests(number.saturating_sub(1));
    let Some(request) = all.first().filter(|request| request.serial == number) else {
        return Err(ToolError::not_found(format!("There is no request {number}."))
            .hint("The numbers stand in the list that browser_network gives without request; the newest 200 are kept."));
    };
    let RequestBodies { sent, received } = active.page.bodies(request).await?;
    let (mut notes, mut truncated) = (Vec::new(), false);
    let mut text = |what: &str, body: &str| {
        // Masked first: a secret that the end of the part cuts would not be recognised.
        let body = secrets::mask(body);
        let shown = truncate_body(&body);
        if shown.len() < body.len() {
            truncated = true;
            notes.push(format!(
                "Of the {what} the first {MAX_BODY_CHARS} of {} letters are shown.",
                body.chars().count()
            ));
        }
        sanitize::multi_line(shown)
    };
    let request_body = sent.map(|body| text("request body", &body));
    let response_body = match received {
        ResponseBody::Text(body) => Some(text("response body", &body)),
        ResponseBody::Binary(bytes) => {
            notes.push(format!("The response is not text; it has about {bytes} bytes."));
            None
        }
        ResponseBody::Missing => {
            notes.push("The browser does not have the response body, or not any more.".to_owned());
            None
        }
    };
    let note = (!notes.is_empty()).then(|| notes.join(" "));
    Ok(Output {
        requests: vec![format_request(request)],
        last: number,
        truncated,
        note,
        request_body,
        response_body,
    })
}

/// The beginning of a body.
fn truncate_body(body: &str) -> &str {
    body.char_indices().nth(MAX_BODY_CHARS).and_then(|(end, _)| body.get(..end)).unwrap_or(body)
}
