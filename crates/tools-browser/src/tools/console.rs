//! `browser_console`.

use crate::browser_sessions::BrowserSessions;
use crate::sanitize;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Maximum lines of a reply.
const MAX_LINES: usize = 50;

/// Returns the newest lines of the page's console, including exceptions; optionally only errors, and only lines after
/// an earlier reply. Prefer browser_network for requests.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only errors and exceptions.
    #[serde(default)]
    errors_only: bool,
    /// Only lines after this number, from an earlier reply.
    #[serde(default)]
    after: u64,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Level, text and location of each line, oldest first.
    lines: Vec<String>,
    /// Value of after to get only newer lines.
    last: u64,
    /// True if older lines were omitted.
    truncated: bool,
}

pub struct Console(pub BrowserSessions);

impl Tool for Console {
    const NAME: &'static str = "browser_console";
    const TITLE: &'static str = "Read the page's console";
    const KEYWORDS: &'static str = "log errors warnings javascript messages debug";
    const REQUESTS: &'static [&'static str] = &[
        "did the site throw any script errors",
        "show what the web app logged in the developer tools",
        "look for uncaught exceptions after pressing submit",
        "read the warnings that the frontend prints",
        "what console.log lines came since the last look",
        "why is the page blank, any javascript stack trace",
    ];
    const EFFECT: Effect = Effect::reads_volatile().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("Errors only", json!({"errors_only": true}))]
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
