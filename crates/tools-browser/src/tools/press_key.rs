//! `browser_press_key`.

use crate::browser_sessions::BrowserSessions;
use crate::browser_sessions::action_outcome::ActionOutcome;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Presses a key or a combination on the focused element and returns what changed; fails for an unknown key. Prefer
/// browser_type for text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Key, such as Enter, Escape, Tab, ArrowDown, PageDown, a, Control+A.
    key: String,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

pub struct PressKey(pub BrowserSessions);

impl Tool for PressKey {
    const NAME: &'static str = "browser_press_key";
    const TITLE: &'static str = "Press a key";
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = ActionOutcome;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("Close a dialog", json!({"key": "Escape"}))]
    }

    async fn run(
        &self,
        input: Input,
        chromium: Chromium,
        cx: &CallContext,
    ) -> Result<ActionOutcome, ToolError> {
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let before = active.baseline().await?;
        active.page.press(&input.key).await?;
        active.outcome(&before).await
    }
}
