//! `browser_drag`.

use crate::browser_defaults;
use crate::browser_sessions::BrowserSessions;
use crate::browser_sessions::action_outcome::ActionOutcome;
use crate::browser_sessions::element_target::ElementTarget;
use crate::engine::DropTarget;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Drags an element, given by ref, selector or text, onto another one or by an offset in pixels, and returns what
/// changed; works for pages with drag events and for those that follow the mouse. Prefer browser_click for anything
/// that takes a click.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Ref of the element to drag, from a snapshot.
    #[serde(default, rename = "ref")]
    reference: Option<String>,
    /// CSS selector of the element to drag.
    #[serde(default)]
    selector: Option<String>,
    /// Text of the element to drag.
    #[serde(default)]
    text: Option<String>,
    /// Ref of the element to drop it on.
    #[serde(default)]
    to_ref: Option<String>,
    /// CSS selector of the element to drop it on.
    #[serde(default)]
    to_selector: Option<String>,
    /// Text of the element to drop it on.
    #[serde(default)]
    to_text: Option<String>,
    /// Pixels to the right, or to the left when negative, instead of an element to drop it on.
    #[serde(default)]
    by_x: Option<f64>,
    /// Pixels down, or up when negative.
    #[serde(default)]
    by_y: Option<f64>,
    /// Maximum milliseconds to wait for the elements.
    #[serde(default = "browser_defaults::default_action_timeout_ms")]
    timeout_ms: u64,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

pub struct Drag(pub BrowserSessions);

impl Tool for Drag {
    const NAME: &'static str = "browser_drag";
    const TITLE: &'static str = "Drag an element";
    const KEYWORDS: &'static str = "drop move slider sort mouse";
    const REQUESTS: &'static [&'static str] = &[
        "pull the card from To do to the Done column",
        "move the volume slider 120 pixels to the right",
        "reorder the playlist by dropping the second song on top",
        "drop the image onto the upload zone with the mouse",
        "hold the divider and shift it left to widen the panel",
        "solve the jigsaw by pulling the piece into its slot",
    ];
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = ActionOutcome;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Onto another element", json!({"ref": "e4", "to_ref": "e9"})),
            Example::new("A slider to the right", json!({"selector": ".handle", "by_x": 120})),
        ]
    }

    async fn run(
        &self,
        input: Input,
        chromium: Chromium,
        cx: &CallContext,
    ) -> Result<ActionOutcome, ToolError> {
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let timeout = browser_defaults::clamp_timeout(input.timeout_ms, cx);
        let from = ElementTarget {
            reference: input.reference.as_deref(),
            selector: input.selector.as_deref(),
            text: input.text.as_deref(),
            accepted: "ref, selector or text",
        };
        let to = ElementTarget {
            reference: input.to_ref.as_deref(),
            selector: input.to_selector.as_deref(),
            text: input.to_text.as_deref(),
            accepted: "to_ref, to_selector or to_text",
        };
        let by = (input.by_x.is_some() || input.by_y.is_some())
            .then(|| (input.by_x.unwrap_or_default(), input.by_y.unwrap_or_default()));
        let drop_target = match (to.is_none(), by) {
            (true, None) => {
                return Err(ToolError::invalid("No drop target given.")
                    .hint("Set to_ref, to_selector or to_text, or pixels as by_x and by_y."));
            }
            (false, Some(_)) => {
                return Err(ToolError::invalid("Set an element to drop it on or pixels, not both."));
            }
            (true, Some((dx, dy))) => DropTarget::Offset(dx, dy),
            (false, None) => DropTarget::Onto(active.find_element(to, timeout).await?),
        };
        let node = active.find_element(from, timeout).await?;
        let before = active.baseline().await?;
        active.page.drag(&node, &drop_target, timeout).await?;
        active.outcome(&before).await
    }
}
