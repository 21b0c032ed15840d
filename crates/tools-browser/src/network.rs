//! `browser_network`.

use crate::browser::Browser;
use crate::clean;
use octo_toolkit::{Chromium, Cx, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Requests of one answer.
const MOST: usize = 50;

/// Lists the newest requests that the page has made, with status, size and why they failed; only those that failed, or whose
/// address has a text, when told so. Prefer browser_console for errors of scripts.
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
    /// The session, when it has a name.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Method, address, kind and outcome of each, the oldest first.
    requests: Vec<String>,
    /// Give it as after to get only newer ones.
    last: u64,
    /// True when older requests were left out.
    truncated: bool,
}

pub struct Network(pub Browser);

impl Tool for Network {
    const NAME: &'static str = "browser_network";
    const TITLE: &'static str = "List the page's requests";
    const EFFECT: Effect = Effect::observes().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("What failed", json!({"failed_only": true}))]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &Cx) -> Result<Output, ToolError> {
        let open = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let mut all = open.page.requests(input.after);
        let last = all.last().map_or(input.after, |request| request.serial);
        all.retain(|request| {
            let failed = request.failed.is_some() || request.status.is_some_and(|status| status >= 400);
            let named = input.url.as_ref().is_none_or(|url| request.url.contains(url.as_str()));
            (failed || !input.failed_only) && named
        });
        let truncated = all.len() > MOST;
        let requests = all.iter().skip(all.len().saturating_sub(MOST)).map(|request| {
            let outcome = match (&request.failed, request.status) {
                (Some(why), _) => format!("failed: {}", clean::cut(&clean::line(why), 120)),
                (None, Some(status)) => format!("{status}, {} bytes", request.bytes),
                (None, None) => "no answer yet".to_owned(),
            };
            let url = clean::cut(&clean::line(&request.url), 200);
            format!("{} {url} ({}): {outcome}", request.method, request.kind)
        });
        Ok(Output { requests: requests.collect(), last, truncated })
    }
}
