//! `browser_network`.

use crate::browser_sessions::{ActiveSession, BrowserSessions};
use crate::engine::{Request, RequestBodies, ResponseBody};
use crate::sanitize;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError, secrets};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Maximum requests of a reply.
const MAX_REQUESTS: usize = 50;
/// Maximum characters of a body.
const MAX_BODY_CHARS: usize = 20_000;

/// Lists the newest requests of the page, each with a number, status, size and error, or shows one of them with its
/// request and response body. Credentials are masked. Prefer browser_console for script errors.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only requests that failed or have a status of 400 or more.
    #[serde(default)]
    failed_only: bool,
    /// Only URLs that contain this text.
    #[serde(default)]
    url: Option<String>,
    /// Only requests after this number, from an earlier reply.
    #[serde(default)]
    after: u64,
    /// Number of one request, to see its bodies.
    #[serde(default)]
    request: Option<u64>,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Number, method, URL, kind and outcome of each, oldest first.
    requests: Vec<String>,
    /// Value of after to get only newer requests.
    last: u64,
    /// True if older requests, or ends of bodies, were omitted.
    truncated: bool,
    /// How much was omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// Body of the requested entry, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_body: Option<String>,
    /// Body of its response, if the browser still has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response_body: Option<String>,
}

pub struct Network(pub BrowserSessions);

impl Tool for Network {
    const NAME: &'static str = "browser_network";
    const TITLE: &'static str = "List the page's requests";
    const KEYWORDS: &'static str = "requests traffic XHR responses API calls debug inspect";
    const REQUESTS: &'static [&'static str] = &[
        "which calls did the page make to the backend",
        "see which ajax requests came back with 404 or 500",
        "look at the response body of the /api/cart call the site sent",
        "what payload did the form submission post",
        "why did an image or font on the page not load",
        "watch the xhr traffic of the open page",
        "how large are the files that the site loads",
    ];
    const EFFECT: Effect = Effect::reads_volatile().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Failed requests", json!({"failed_only": true})),
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
        let note =
            (older > 0).then(|| format!("{older} older requests are not listed; narrow the list with url."));
        Ok(Output { requests, last, truncated: older > 0, note, request_body: None, response_body: None })
    }
}

/// Formats a request as a line.
fn format_request(request: &Request) -> String {
    let outcome = match (&request.error, request.status) {
        (Some(why), _) => format!("failed: {}", sanitize::truncate(&sanitize::single_line(why), 120)),
        (None, Some(status)) => format!("{status}, {} bytes", request.bytes),
        (None, None) => "no response yet".to_owned(),
    };
    let url = secrets::mask(&request.url).into_owned();
    let url = sanitize::truncate(&sanitize::single_line(&url), 200);
    format!("#{} {} {url} ({}): {outcome}", request.serial, request.method, request.kind)
}

/// One request with its bodies.
async fn show_request(active: &ActiveSession, number: u64) -> Result<Output, ToolError> {
    let all = active.page.requests(number.saturating_sub(1));
    let Some(request) = all.first().filter(|request| request.serial == number) else {
        return Err(ToolError::not_found(format!("Request {number} not found."))
            .hint("Call browser_network without request to list the numbers; the newest 200 are stored."));
    };
    let RequestBodies { sent, received } = active.page.bodies(request).await?;
    let (mut notes, mut truncated) = (Vec::new(), false);
    let mut text = |what: &str, body: &str| {
        // Masked before truncation: a secret cut at the end would not be recognized.
        let body = secrets::mask(body);
        let shown = truncate_body(&body);
        if shown.len() < body.len() {
            truncated = true;
            notes.push(format!(
                "The first {MAX_BODY_CHARS} of {} characters of the {what} are shown.",
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
            notes.push("The browser does not have the response body, or no longer has it.".to_owned());
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
