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
    const KEYWORDS: &'static str = "keyboard shortcut enter escape tab arrow";
    const REQUESTS: &'static [&'static str] = &[
        "close the popup with escape",
        "jump to the next field with the tab key",
        "mark everything in the editor with control a",
        "use the arrow down key to move through the suggestions",
        "send the keyboard shortcut ctrl+s to the web app",
        "hit enter in the element that has focus",
        "press page down or space on the keyboard",
    ];
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
