//! `browser_back`.

use crate::browser_defaults;
use crate::browser_sessions::BrowserSessions;
use crate::browser_sessions::action_outcome::ActionOutcome;
use crate::engine::WaitUntil;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Goes one step back in the tab's history and returns a short snapshot of that page, with refs; fails if there is
/// nothing to go back to. Prefer browser_navigate when you know the URL.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

pub struct Back(pub BrowserSessions);

impl Tool for Back {
    const NAME: &'static str = "browser_back";
    const TITLE: &'static str = "Go back";
    const KEYWORDS: &'static str = "previous page return history";
    const REQUESTS: &'static [&'static str] = &[
        "return to the previous page",
        "go to where i was before i followed that link",
        "undo the last navigation in the tab",
        "leave the product and get to the results list i came from",
        "step to the preceding entry in the browsing history",
        "that was the wrong link, take me to the earlier page",
    ];
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = ActionOutcome;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("One step back", json!({}))]
    }

    async fn run(
        &self,
        input: Input,
        chromium: Chromium,
        cx: &CallContext,
    ) -> Result<ActionOutcome, ToolError> {
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let timeout = browser_defaults::clamp_timeout(browser_defaults::default_navigation_timeout_ms(), cx);
        if active.page.back(WaitUntil::NetworkIdle, timeout).await?.is_none() {
            return Err(ToolError::invalid("The history has no previous page.")
                .hint("Open a URL with browser_navigate."));
        }
        let page_state = active.page_state().await?;
        let mut after = active.describe_changes(&page_state);
        after.title = Some(page_state.title);
        Ok(after)
    }
}
