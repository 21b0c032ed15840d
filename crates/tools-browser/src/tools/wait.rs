//! `browser_wait`.

use crate::browser_defaults;
use crate::browser_sessions::action_outcome::ActionOutcome;
use crate::browser_sessions::{ActiveSession, BrowserSessions};
use crate::snapshot::find_items;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::time::Instant;

/// Waits until the page shows a text, has an element for a selector or reaches a URL, else until it is idle, and
/// returns what changed; a timeout is an error with the current page.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Text to wait for.
    #[serde(default)]
    text: Option<String>,
    /// CSS selector of an element to wait for.
    #[serde(default)]
    selector: Option<String>,
    /// Part of the URL to wait for.
    #[serde(default)]
    url: Option<String>,
    /// Waits for text or selector to disappear instead.
    #[serde(default)]
    gone: bool,
    /// Maximum milliseconds to wait.
    #[serde(default = "browser_defaults::default_wait_timeout_ms")]
    timeout_ms: u64,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

pub struct Wait(pub BrowserSessions);

impl Tool for Wait {
    const NAME: &'static str = "browser_wait";
    const TITLE: &'static str = "Wait for the page";
    const KEYWORDS: &'static str = "until loaded ready appears delay";
    const REQUESTS: &'static [&'static str] = &[
        "hold on until the spinner is gone",
        "do not continue before the page says Payment received",
        "pause until the results table has appeared",
        "give the page time to settle after submitting",
        "let the redirect to /dashboard finish first",
        "stay here until the loading overlay disappears",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    type Input = Input;
    type Output = ActionOutcome;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("Wait for a text", json!({"text": "Saved"}))]
    }

    async fn run(
        &self,
        input: Input,
        chromium: Chromium,
        cx: &CallContext,
    ) -> Result<ActionOutcome, ToolError> {
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let timeout = browser_defaults::clamp_timeout(input.timeout_ms, cx);
        let before = active.baseline().await?;
        if input.text.is_none() && input.selector.is_none() && input.url.is_none() {
            active.page.settle(timeout).await?;
            return active.outcome(&before).await;
        }
        let end = Instant::now() + timeout;
        while !is_met(&active, &input).await? {
            if Instant::now() >= end {
                return Err(timeout_error(&mut active, &input).await);
            }
            active.page.wait_for_change(end).await?;
        }
        active.outcome(&before).await
    }
}

/// Whether all conditions are met.
async fn is_met(active: &ActiveSession, input: &Input) -> Result<bool, ToolError> {
    if let Some(selector) = &input.selector
        && active.page.query(selector, 1).await?.is_empty() != input.gone
    {
        return Ok(false);
    }
    if input.text.is_none() && input.url.is_none() {
        return Ok(true);
    }
    let page_state = active.page_state().await?;
    let text = input.text.as_deref();
    let said =
        text.is_none_or(|text| find_items(&page_state.tree, Some(text), None).is_empty() == input.gone);
    Ok(said && input.url.as_ref().is_none_or(|url| page_state.url.contains(url.as_str())))
}

async fn timeout_error(active: &mut ActiveSession, input: &Input) -> ToolError {
    let (url, title) = active.page.location().await.unwrap_or_default();
    let (url, title) = (crate::sanitize::single_line(&url), crate::sanitize::single_line(&title));
    let message = format!("The condition was not met within {} ms.", input.timeout_ms);
    ToolError::new(octo_toolkit::Kind::Timeout, message)
        .hint(format!("The page is {title:?} at {url}; take a snapshot with browser_snapshot."))
}
