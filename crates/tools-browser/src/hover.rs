//! `browser_hover`.

use crate::after::After;
use crate::browser::Browser;
use crate::given;
use crate::target::Target;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Moves the mouse over an element, given by ref or selector, and says what that changed, such as a menu that opened; fails
/// when there is no such element.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Ref of the element, from a snapshot.
    #[serde(default, rename = "ref")]
    reference: Option<String>,
    /// CSS selector of the element.
    #[serde(default)]
    selector: Option<String>,
    /// The session, when it has a name.
    #[serde(default)]
    session: Option<String>,
}

pub struct Hover(pub Browser);

impl Tool for Hover {
    const NAME: &'static str = "browser_hover";
    const TITLE: &'static str = "Hover over an element";
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = After;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("Open a menu", json!({"ref": "e7"}))]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<After, ToolError> {
        let mut open = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let target = Target {
            reference: input.reference.as_deref(),
            selector: input.selector.as_deref(),
            ..Target::one()
        };
        let patience = given::within(given::five_seconds(), cx);
        let node = open.find(target, patience).await?;
        let before = open.before().await?;
        open.page.hover(&node, patience).await?;
        open.after(&before).await
    }
}
