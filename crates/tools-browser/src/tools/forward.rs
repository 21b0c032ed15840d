//! `browser_forward`.

use crate::browser_defaults;
use crate::browser_sessions::BrowserSessions;
use crate::browser_sessions::action_outcome::ActionOutcome;
use crate::engine::WaitUntil;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Goes one step forward in the tab's history and returns a short snapshot of that page, with refs; fails if there is
/// nothing to go forward to. Prefer browser_navigate when you know the URL.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

pub struct Forward(pub BrowserSessions);

impl Tool for Forward {
    const NAME: &'static str = "browser_forward";
    const TITLE: &'static str = "Go forward";
    const KEYWORDS: &'static str = "next page history again";
    const REQUESTS: &'static [&'static str] = &[
        "go on to the page that i just left by going back",
        "redo the navigation that i stepped out of",
        "move one entry ahead in the browsing history",
        "return to the later page after stepping backward",
        "use the forward button of the browser",
        "i went one page too far back, take me on again",
    ];
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = ActionOutcome;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("One step forward", json!({}))]
    }

    async fn run(
        &self,
        input: Input,
        chromium: Chromium,
        cx: &CallContext,
    ) -> Result<ActionOutcome, ToolError> {
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let timeout = browser_defaults::clamp_timeout(browser_defaults::default_navigation_timeout_ms(), cx);
        if active.page.forward(WaitUntil::NetworkIdle, timeout).await?.is_none() {
            return Err(
                ToolError::invalid("The history has no next page.").hint("Open a URL with browser_navigate.")
            );
        }
        let page_state = active.page_state().await?;
        let mut after = active.describe_changes(&page_state);
        after.title = Some(page_state.title);
        Ok(after)
    }
}
