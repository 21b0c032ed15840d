//! `browser_forward`.

use crate::after::After;
use crate::browser::Browser;
use crate::engine::WaitUntil;
use crate::given;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Goes one step forward in the tab's history and shows the page there in short, with refs; fails when there is nothing to
/// go forward to. Prefer browser_navigate when you know the address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The session, when it has a name.
    #[serde(default)]
    session: Option<String>,
}

pub struct Forward(pub Browser);

impl Tool for Forward {
    const NAME: &'static str = "browser_forward";
    const TITLE: &'static str = "Go forward";
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = After;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("One step forward", json!({}))]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<After, ToolError> {
        let mut open = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let patience = given::within(given::half_a_minute(), cx);
        if open.page.forward(WaitUntil::NetworkIdle, patience).await?.is_none() {
            return Err(ToolError::invalid("There is nothing to go forward to.")
                .hint("Open an address with browser_navigate."));
        }
        let look = open.look().await?;
        let mut after = open.tell(&look);
        after.title = Some(look.title);
        Ok(after)
    }
}
