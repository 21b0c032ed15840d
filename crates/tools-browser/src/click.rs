//! `browser_click`.

use crate::after::After;
use crate::browser::Browser;
use crate::engine::{Button, DialogPolicy};
use crate::given;
use crate::target::Target;
use octo_toolkit::{Chromium, Cx, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Clicks an element, given by ref, selector or text, and says what changed, with refs to go on with; fails naming near
/// elements when it is not there. Prefer a ref when you have one.
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

    async fn run(&self, input: Input, chromium: Chromium, cx: &Cx) -> Result<After, ToolError> {
        let mut open = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let target = Target {
            reference: input.reference.as_deref(),
            selector: input.selector.as_deref(),
            text: input.text.as_deref(),
            ways: "ref, selector or text",
        };
        let node = open.find(target, given::within(input.timeout_ms, cx)).await?;
        let before = open.before().await?;
        let button = match input.button {
            Which::Left => Button::Left,
            Which::Right => Button::Right,
        };
        open.session.answer_dialogs(match input.dialog {
            None => DialogPolicy::Careful,
            Some(Answer::Accept) => DialogPolicy::Accept(input.dialog_text),
            Some(Answer::Dismiss) => DialogPolicy::Dismiss,
        });
        let clicked = open.page.click(&node, button, if input.double { 2 } else { 1 }).await;
        let after = match clicked {
            Ok(()) => open.after(&before).await,
            Err(error) => Err(error),
        };
        open.session.answer_dialogs(DialogPolicy::Careful);
        after
    }
}
