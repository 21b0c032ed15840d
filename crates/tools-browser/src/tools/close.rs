//! `browser_close`.

use crate::browser_sessions::BrowserSessions;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Closes the session with all its tabs and drops its cookies and refs; does nothing if there is none. Prefer
/// browser_tabs to close a single tab.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// False if there was no such session.
    closed: bool,
}

pub struct Close(pub BrowserSessions);

impl Tool for Close {
    const NAME: &'static str = "browser_close";
    const TITLE: &'static str = "Close the browser session";
    const KEYWORDS: &'static str = "quit end session cookies";
    const REQUESTS: &'static [&'static str] = &[
        "i am done with the website, shut everything down",
        "quit the browser and throw its cookies away",
        "end the browsing session for the test user",
        "log out by dropping the whole browser profile",
        "free the resources of the open browser",
        "close all tabs together and start clean next time",
    ];
    const EFFECT: Effect = Effect::writes().idempotent();
    type Input = Input;
    type Output = Output;
    type Grants = ();

    fn examples() -> Vec<Example> {
        vec![Example::new("Close it", json!({}))]
    }

    async fn run(&self, input: Input, (): (), cx: &CallContext) -> Result<Output, ToolError> {
        Ok(Output { closed: self.0.close(input.session.as_deref(), cx).await? })
    }
}
