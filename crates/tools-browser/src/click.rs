//! `browser_click`.

use crate::after::After;
use crate::browser::{Browser, Open};
use crate::engine::{Button, DialogPolicy, Node};
use crate::given;
use crate::target::Target;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// Clicks an element, given by ref, selector or text, or a point of the viewport, and says what changed, with refs to go on with;
/// presses nothing else, and fails naming what is near or in the way. Prefer a ref when you have one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Ref of the element, from a snapshot.
    #[serde(default, rename = "ref")]
    reference: Option<String>,
    /// CSS selector of the element.
    #[serde(default)]
    selector: Option<String>,
    /// What the element says; must fit one element.
    #[serde(default)]
    text: Option<String>,
    /// Pixels from the left edge of the viewport, with y, for what has no element of its own.
    #[serde(default)]
    x: Option<f64>,
    /// Pixels from the top edge of the viewport.
    #[serde(default)]
    y: Option<f64>,
    /// Most milliseconds to wait for the element.
    #[serde(default = "given::five_seconds")]
    timeout_ms: u64,
    /// Clicks twice, quickly.
    #[serde(default)]
    double: bool,
    /// Button of the mouse.
    #[serde(default = "left")]
    button: Which,
    /// What to answer when a dialog comes up; without it alerts are accepted and questions dismissed.
    #[serde(default)]
    dialog: Option<Answer>,
    /// Text for a dialog that asks for one.
    #[serde(default)]
    dialog_text: Option<String>,
    /// The session, when it has a name.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    Accept,
    Dismiss,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    Left,
    Right,
}

fn left() -> Which {
    Which::Left
}

pub struct Click(pub Browser);

impl Tool for Click {
    const NAME: &'static str = "browser_click";
    const TITLE: &'static str = "Click an element";
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = After;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("By ref", json!({"ref": "e12"})),
            Example::new(
                "By text, saying yes to its question",
                json!({"text": "Delete", "dialog": "accept"}),
            ),
        ]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<After, ToolError> {
        let mut open = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let patience = given::within(input.timeout_ms, cx);
        let goal = goal(&mut open, &input, patience).await?;
        let before = open.before().await?;
        let button = match input.button {
            Which::Left => Button::Left,
            Which::Right => Button::Right,
        };
        let count = if input.double { 2 } else { 1 };
        open.session.answer_dialogs(match input.dialog {
            None => DialogPolicy::Careful,
            Some(Answer::Accept) => DialogPolicy::Accept(input.dialog_text),
            Some(Answer::Dismiss) => DialogPolicy::Dismiss,
        });
        let clicked = match &goal {
            Goal::Element(node) => open.page.click(node, button, count, patience).await,
            Goal::Point(point, _) => open.page.click_at(*point, button, count).await,
        };
        let after = match clicked {
            Ok(()) => open.after(&before).await,
            Err(error) => Err(error),
        };
        open.session.answer_dialogs(DialogPolicy::Careful);
        let mut after = after?;
        if let Goal::Point((x, y), what) = goal {
            after.events.insert(0, format!("Clicked `{what}` at {x},{y}."));
        }
        Ok(after)
    }
}

/// What is clicked.
enum Goal {
    Element(Node),
    /// With what is there.
    Point((f64, f64), String),
}

async fn goal(open: &mut Open, input: &Input, patience: Duration) -> Result<Goal, ToolError> {
    let target = Target {
        reference: input.reference.as_deref(),
        selector: input.selector.as_deref(),
        text: input.text.as_deref(),
        ways: "ref, selector, text or x and y",
    };
    match (input.x, input.y) {
        (None, None) => Ok(Goal::Element(open.find(target, patience).await?)),
        (Some(x), Some(y)) if target.is_none() => {
            let (width, height) = open.page.viewport().await?;
            if !(0.0..width).contains(&x) || !(0.0..height).contains(&y) {
                return Err(ToolError::invalid(format!("{x},{y} is outside the viewport."))
                    .hint(format!("It is {width} by {height} pixels; scroll first with browser_scroll.")));
            }
            Ok(Goal::Point((x, y), open.page.named_at((x, y)).await?))
        }
        (Some(_), Some(_)) => Err(ToolError::invalid(format!("Give only one of {}.", target.ways))
            .hint("A ref is exact; prefer it.")),
        _ => Err(ToolError::invalid("Give both x and y.")),
    }
}
