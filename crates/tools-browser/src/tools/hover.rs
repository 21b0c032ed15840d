//! `browser_hover`.

use crate::browser_defaults;
use crate::browser_sessions::BrowserSessions;
use crate::browser_sessions::action_outcome::ActionOutcome;
use crate::browser_sessions::element_target::ElementTarget;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Moves the mouse over an element, given by ref or selector, and returns what changed, such as a menu that opened;
/// fails if the element is not found.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Ref of the element, from a snapshot.
    #[serde(default, rename = "ref")]
    reference: Option<String>,
    /// CSS selector of the element.
    #[serde(default)]
    selector: Option<String>,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

pub struct Hover(pub BrowserSessions);

impl Tool for Hover {
    const NAME: &'static str = "browser_hover";
    const TITLE: &'static str = "Hover over an element";
    const KEYWORDS: &'static str = "mouse over tooltip menu";
    const REQUESTS: &'static [&'static str] = &[
        "point the mouse at the Products menu so that it unfolds",
        "make the tooltip of the info icon appear",
        "move the cursor over the chart bar to read its value",
        "keep the pointer on the avatar without pressing it",
        "reveal the submenu that shows only on mouseover",
        "see what pops up when i mouse over the price",
    ];
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = ActionOutcome;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("Open a menu", json!({"ref": "e7"}))]
    }

    async fn run(
        &self,
        input: Input,
        chromium: Chromium,
        cx: &CallContext,
    ) -> Result<ActionOutcome, ToolError> {
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let target = ElementTarget {
            reference: input.reference.as_deref(),
            selector: input.selector.as_deref(),
            ..ElementTarget::ref_or_selector()
        };
        let timeout = browser_defaults::clamp_timeout(browser_defaults::default_action_timeout_ms(), cx);
        let node = active.find_element(target, timeout).await?;
        let before = active.baseline().await?;
        active.page.hover(&node, timeout).await?;
        active.outcome(&before).await
    }
}
