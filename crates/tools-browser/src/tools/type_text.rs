//! `browser_type`.

use crate::browser_defaults;
use crate::browser_sessions::BrowserSessions;
use crate::browser_sessions::action_outcome::ActionOutcome;
use crate::browser_sessions::element_target::ElementTarget;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Types text into a field, given by ref or selector, or else into the focused element, and returns what changed; fails
/// if the field is not found. Prefer browser_fill_form for several fields.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Ref of the element, from a snapshot.
    #[serde(default, rename = "ref")]
    reference: Option<String>,
    /// CSS selector of the element.
    #[serde(default)]
    selector: Option<String>,
    /// Text to type.
    text: String,
    /// Presses Enter afterwards.
    #[serde(default)]
    press_enter: bool,
    /// Clears the field first.
    #[serde(default = "browser_defaults::default_true")]
    clear_first: bool,
    /// Types key by key, for fields that handle each key; slower.
    #[serde(default)]
    slowly: bool,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

pub struct TypeText(pub BrowserSessions);

impl Tool for TypeText {
    const NAME: &'static str = "browser_type";
    const TITLE: &'static str = "Type text";
    const KEYWORDS: &'static str = "enter input write text field keyboard";
    const REQUESTS: &'static [&'static str] = &[
        "put my email address into the login box",
        "enter octopus cables into the search field and hit return",
        "write the password in the focused input",
        "key in the code letter by letter so that autocomplete reacts",
        "overwrite the title field with Quarterly review",
        "add text to the comment box without clearing what is there",
    ];
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = ActionOutcome;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "Search for something",
            json!({"ref": "e5", "text": "octopus", "press_enter": true}),
        )]
    }

    async fn run(
        &self,
        input: Input,
        chromium: Chromium,
        cx: &CallContext,
    ) -> Result<ActionOutcome, ToolError> {
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let node = match (&input.reference, &input.selector) {
            (None, None) => None,
            (reference, selector) => {
                let target = ElementTarget {
                    reference: reference.as_deref(),
                    selector: selector.as_deref(),
                    ..ElementTarget::ref_or_selector()
                };
                Some(
                    active
                        .find_element(
                            target,
                            browser_defaults::clamp_timeout(
                                browser_defaults::default_action_timeout_ms(),
                                cx,
                            ),
                        )
                        .await?,
                )
            }
        };
        let before = active.baseline().await?;
        match &node {
            None => active.page.type_text(&input.text).await?,
            Some(node) if input.slowly => {
                match input.clear_first {
                    true => active.page.fill(node, "", true).await?,
                    false => active.page.focus(node).await?,
                }
                active.page.type_text(&input.text).await?;
            }
            Some(node) => active.page.fill(node, &input.text, input.clear_first).await?,
        }
        if input.press_enter {
            active.page.press("Enter").await?;
        }
        active.outcome(&before).await
    }
}
