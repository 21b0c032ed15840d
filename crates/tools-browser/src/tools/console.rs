//! `browser_console`.

use crate::browser_sessions::BrowserSessions;
use crate::sanitize;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lines of one answer.
const MAX_LINES: usize = 50;

/// Gives the newest lines that the page has written to its console, exceptions among them; only errors when told so, and only what
/// came after an earlier answer. Prefer browser_network for requests.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only errors and exceptions.
    #[serde(default)]
    errors_only: bool,
    /// Only what came after this number, from an earlier answer.
    #[serde(default)]
    after: u64,
    /// The session, when it has a name.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Level, text and place of each, the oldest first.
    lines: Vec<String>,
    /// Give it as after to get only newer ones.
    last: u64,
    /// True when older lines were left out.
    truncated: bool,
}

pub struct Console(pub BrowserSessions);

impl Tool for Console {
    const NAME: &'static str = "browser_console";
    const TITLE: &'static str = "Read the page's console";
    const EFFECT: Effect = Effect::reads_volatile().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("What went wrong", json!({"errors_only": true}))]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<Output, ToolError> {
        let active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let mut all = active.page.console(input.after);
        let last = all.last().map_or(input.after, |line| line.serial);
        all.retain(|line| !input.errors_only || matches!(line.level.as_str(), "error" | "exception"));
        let truncated = all.len() > MAX_LINES;
        let lines = all.iter().skip(all.len().saturating_sub(MAX_LINES)).map(|line| {
            let place =
                line.location.as_deref().map(|place| format!(" ({})", sanitize::truncate(place, 120)));
            format!(
                "{}: {}{}",
                line.level,
                sanitize::truncate(&sanitize::single_line(&line.text), 300),
                place.unwrap_or_default()
            )
        });
        Ok(Output { lines: lines.collect(), last, truncated })
    }
}
