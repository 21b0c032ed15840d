//! `browser_click`.

use crate::browser_defaults;
use crate::browser_sessions::action_outcome::ActionOutcome;
use crate::browser_sessions::element_target::ElementTarget;
use crate::browser_sessions::{ActiveSession, BrowserSessions};
use crate::engine::{Button, DialogPolicy, Node};
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// Clicks an element, given by ref, selector or text, or a point of the viewport, and returns what changed, with refs;
/// clicks nothing else, and on failure lists similar or covering elements. Prefer a ref when you have one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Ref of the element, from a snapshot.
    #[serde(default, rename = "ref")]
    reference: Option<String>,
    /// CSS selector of the element.
    #[serde(default)]
    selector: Option<String>,
    /// Text of the element; must match one element.
    #[serde(default)]
    text: Option<String>,
    /// Pixels from the left edge of the viewport, with y, for what has no element of its own.
    #[serde(default)]
    x: Option<f64>,
    /// Pixels from the top edge of the viewport.
    #[serde(default)]
    y: Option<f64>,
    /// Maximum milliseconds to wait for the element.
    #[serde(default = "browser_defaults::default_action_timeout_ms")]
    timeout_ms: u64,
    /// Double-clicks.
    #[serde(default)]
    double: bool,
    /// Mouse button.
    #[serde(default = "default_button")]
    button: MouseButton,
    /// How to answer a dialog; by default alerts are accepted and other dialogs dismissed.
    #[serde(default)]
    dialog: Option<DialogAnswer>,
    /// Text for a prompt dialog.
    #[serde(default)]
    dialog_text: Option<String>,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DialogAnswer {
    Accept,
    Dismiss,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MouseButton {
    Left,
    Right,
}

fn default_button() -> MouseButton {
    MouseButton::Left
}

pub struct Click(pub BrowserSessions);

impl Tool for Click {
    const NAME: &'static str = "browser_click";
    const TITLE: &'static str = "Click an element";
    const KEYWORDS: &'static str = "press button tap follow link";
    const REQUESTS: &'static [&'static str] = &[
        "press the Save button",
        "hit the blue Buy now link",
        "confirm the delete popup by pressing OK",
        "get rid of the cookie banner with Accept all",
        "double-press the cell to make it editable",
        "right mouse button on the file icon for the context menu",
        "tap the canvas at position 200, 340",
    ];
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = ActionOutcome;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("By ref", json!({"ref": "e12"})),
            Example::new("By text, accepting its dialog", json!({"text": "Delete", "dialog": "accept"})),
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
        let target = resolve_target(&mut active, &input, timeout).await?;
        let before = active.baseline().await?;
        let button = match input.button {
            MouseButton::Left => Button::Left,
            MouseButton::Right => Button::Right,
        };
        let count = if input.double { 2 } else { 1 };
        active.session.answer_dialogs(match input.dialog {
            None => DialogPolicy::AcceptAlerts,
            Some(DialogAnswer::Accept) => DialogPolicy::Accept(input.dialog_text),
            Some(DialogAnswer::Dismiss) => DialogPolicy::Dismiss,
        });
        let clicked = match &target {
            ClickTarget::Element(node) => active.page.click(node, button, count, timeout).await,
            ClickTarget::Point(point, _) => active.page.click_at(*point, button, count).await,
        };
        let after = match clicked {
            Ok(()) => active.outcome(&before).await,
            Err(error) => Err(error),
        };
        active.session.answer_dialogs(DialogPolicy::AcceptAlerts);
        let mut after = after?;
        if let ClickTarget::Point((x, y), what) = target {
            after.events.insert(0, format!("Clicked `{what}` at {x},{y}."));
        }
        Ok(after)
    }
}

/// Target of a click.
enum ClickTarget {
    Element(Node),
    /// With the name of the element there.
    Point((f64, f64), String),
}

async fn resolve_target(
    active: &mut ActiveSession,
    input: &Input,
    timeout: Duration,
) -> Result<ClickTarget, ToolError> {
    let target = ElementTarget {
        reference: input.reference.as_deref(),
        selector: input.selector.as_deref(),
        text: input.text.as_deref(),
        accepted: "ref, selector, text or x and y",
    };
    match (input.x, input.y) {
        (None, None) => Ok(ClickTarget::Element(active.find_element(target, timeout).await?)),
        (Some(x), Some(y)) if target.is_none() => {
            let (width, height) = active.page.viewport().await?;
            if !(0.0..width).contains(&x) || !(0.0..height).contains(&y) {
                return Err(ToolError::invalid(format!("{x},{y} is outside the viewport."))
                    .hint(format!("It is {width} by {height} pixels; scroll first with browser_scroll.")));
            }
            Ok(ClickTarget::Point((x, y), active.page.describe_at((x, y)).await?))
        }
        (Some(_), Some(_)) => Err(ToolError::invalid(format!("Set only one of {}.", target.accepted))
            .hint("A ref is exact; prefer it.")),
        _ => Err(ToolError::invalid("Set both x and y.")),
    }
}
