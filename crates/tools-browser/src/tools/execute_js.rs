//! `browser_execute_js`.

use crate::browser_sessions::{ActiveSession, BrowserSessions};
use crate::engine::World;
use crate::{browser_defaults, sanitize};
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Maximum characters of a result; a larger one is returned as truncated text.
const MAX_RESULT_CHARS: usize = 20_000;

const MIN_RUN_TIME: Duration = Duration::from_millis(10);

/// Runs JavaScript in the page and returns its value as JSON; an exception is an error with its text. Prefer the other
/// browser tools, which wait for the page and return what changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// An expression, a function, which is called, or statements with a return; promises are awaited.
    script: String,
    /// Maximum milliseconds to run.
    #[serde(default = "browser_defaults::default_action_timeout_ms")]
    timeout_ms: u64,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The value; truncated text if it was too large.
    result: Value,
    /// True if the value was too large.
    truncated: bool,
}

pub struct ExecuteJs(pub BrowserSessions);

impl Tool for ExecuteJs {
    const NAME: &'static str = "browser_execute_js";
    const TITLE: &'static str = "Run JavaScript in the page";
    const KEYWORDS: &'static str = "javascript script evaluate run in page DOM";
    const REQUESTS: &'static [&'static str] = &[
        "run document.title in the page",
        "evaluate a script in the site's context",
        "count all images of the page with code",
        "read a value out of localStorage of the open site",
        "call a function of the web app and return its result",
        "set a css variable on the page through code",
        "await a promise inside the page and give me the value",
    ];
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("Count the links", json!({"script": "document.links.length"}))]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<Output, ToolError> {
        if !self.0.settings().allow_javascript {
            return Err(ToolError::denied("JavaScript is disabled by the operator.").hint(
                "Use the other browser tools, or ask the operator to set `browser.allow_javascript`.",
            ));
        }
        let active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let timeout = browser_defaults::clamp_timeout(input.timeout_ms, cx);
        let started = Instant::now();
        // A busy page does not even compile a script; running it then fails with the right error.
        let compiles = tokio::time::timeout(timeout, is_expression(&active, &input.script)).await;
        let script = wrap_script(&input.script, compiles.unwrap_or(false));
        let left = timeout.saturating_sub(started.elapsed()).max(MIN_RUN_TIME);
        let value = active.page.evaluate(&script, World::Main, left).await?;
        Ok(limit_result(value))
    }
}

/// Calls a value that is a function, unless it is a class.
const CALL_IF_FUNCTION_JS: &str = "(value => typeof value === 'function' && !/^class\\b/.test(Function.prototype.toString.call(value)) ? value() : value)";

/// Wraps an expression in an async function, so that promises can be awaited.
fn wrap_expression(script: &str) -> String {
    format!("(async () => {CALL_IF_FUNCTION_JS}(await (\n{}\n)))()", script.trim().trim_end_matches(';'))
}

/// Whether the script compiles as an expression; checked without running it.
async fn is_expression(active: &ActiveSession, script: &str) -> bool {
    let params = json!({"expression": wrap_expression(script), "sourceURL": "", "persistScript": false});
    let compiled = active.page.cdp("Runtime.compileScript", params).await;
    compiled.is_ok_and(|read| read.get("exceptionDetails").is_none())
}

/// Statements with return or await become a function body; others yield the value of the last one.
fn wrap_script(script: &str, is_expression: bool) -> String {
    let has_word = |word: &str| {
        script.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|found| found == word)
    };
    match is_expression {
        true => wrap_expression(script),
        false if has_word("return") || has_word("await") => {
            format!("(async () => {CALL_IF_FUNCTION_JS}(await (async () => {{{script}\n}})()))()")
        }
        false => script.to_owned(),
    }
}

fn limit_result(value: Value) -> Output {
    let text = match &value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.chars().nth(MAX_RESULT_CHARS).is_some() {
        true => {
            Output { result: Value::String(sanitize::truncate(&text, MAX_RESULT_CHARS)), truncated: true }
        }
        false => Output { result: value, truncated: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_become_a_function() {
        let rows = [
            ("1 + 1;", true, format!("(async () => {CALL_IF_FUNCTION_JS}(await (\n1 + 1\n)))()")),
            (
                "return 2",
                false,
                format!("(async () => {CALL_IF_FUNCTION_JS}(await (async () => {{return 2\n}})()))()"),
            ),
            ("let a = 1; a", false, "let a = 1; a".to_owned()),
        ];
        for (script, is_expression, wanted) in rows {
            assert_eq!(wrap_script(script, is_expression), wanted);
        }
    }

    #[test]
    fn a_large_value_is_cut_and_says_so() {
        let large = limit_result(json!(vec![1; MAX_RESULT_CHARS]));
        assert!(large.truncated && large.result.as_str().unwrap().ends_with('…'));
        assert!(!limit_result(json!({"a": 1})).truncated);
    }
}
