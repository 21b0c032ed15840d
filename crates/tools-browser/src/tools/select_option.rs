//! `browser_select_option`.

use crate::browser_defaults;
use crate::browser_sessions::BrowserSessions;
use crate::browser_sessions::action_outcome::ActionOutcome;
use crate::browser_sessions::element_target::ElementTarget;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Selects options of a drop-down or list by value or label, replacing the selection, and returns what changed; if an
/// option does not exist, lists the options. Prefer browser_click for menus that are not a select element.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Ref of the element, from a snapshot.
    #[serde(default, rename = "ref")]
    reference: Option<String>,
    /// CSS selector of the element.
    #[serde(default)]
    selector: Option<String>,
    /// Values or labels to select.
    values: Vec<String>,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

pub struct SelectOption(pub BrowserSessions);

impl Tool for SelectOption {
    const NAME: &'static str = "browser_select_option";
    const TITLE: &'static str = "Select an option";
    const KEYWORDS: &'static str = "choose dropdown list pick combobox";
    const REQUESTS: &'static [&'static str] = &[
        "choose Norway from the country dropdown",
        "pick Express delivery in the shipping list box",
        "set the language menu to German",
        "which choices does this combo box have, and take the second",
        "mark three entries in a multi-select list",
        "change the sort order picker to price ascending",
    ];
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = ActionOutcome;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("Choose a country", json!({"ref": "e9", "values": ["Norway"]}))]
    }

    async fn run(
        &self,
        input: Input,
        chromium: Chromium,
        cx: &CallContext,
    ) -> Result<ActionOutcome, ToolError> {
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        if input.values.is_empty() {
            return Err(ToolError::invalid("values is empty.").hint("Set at least one option."));
        }
        let target = ElementTarget {
            reference: input.reference.as_deref(),
            selector: input.selector.as_deref(),
            ..ElementTarget::ref_or_selector()
        };
        let node = active
            .find_element(
                target,
                browser_defaults::clamp_timeout(browser_defaults::default_action_timeout_ms(), cx),
            )
            .await?;
        let before = active.baseline().await?;
        active.page.select(&node, &input.values).await?;
        active.outcome(&before).await
    }
}
