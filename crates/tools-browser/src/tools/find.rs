//! `browser_find`.

use crate::browser_sessions::BrowserSessions;
use crate::sanitize;
use crate::snapshot::find_items;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Finds elements of the page by text, role or both, in view or not, and returns their refs, best first, or none.
/// Prefer browser_snapshot to see the page.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Part of the element's text, case-insensitive.
    #[serde(default)]
    text: Option<String>,
    /// Role, such as link, button, textbox, heading, row.
    #[serde(default)]
    role: Option<String>,
    /// Maximum number of elements.
    #[serde(default = "default_limit")]
    limit: u64,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

fn default_limit() -> u64 {
    10
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// One line for each: role, name, ref, states.
    found: Vec<String>,
    /// Total number of matches.
    total: usize,
    /// True if there are more than returned.
    truncated: bool,
}

pub struct Find(pub BrowserSessions);

impl Tool for Find {
    const NAME: &'static str = "browser_find";
    const TITLE: &'static str = "Find elements on the page";
    const KEYWORDS: &'static str = "locate button link element on the page";
    const REQUESTS: &'static [&'static str] = &[
        "where on this page is the checkout button",
        "locate the link that says forgot password",
        "is there a row for invoice 4711 in the table on screen",
        "get the reference of the email textbox by its name",
        "look up every heading on the open page",
        "check whether a Subscribe button exists, even below the fold",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("A button by its text", json!({"text": "sign in", "role": "button"}))]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<Output, ToolError> {
        if input.text.is_none() && input.role.is_none() {
            return Err(ToolError::invalid("Set text, role or both."));
        }
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let page_state = active.page_state().await?;
        let all = find_items(&page_state.tree, input.text.as_deref(), input.role.as_deref());
        let limit = usize::try_from(input.limit).unwrap_or(usize::MAX).clamp(1, 100);
        let found: Vec<String> = all
            .iter()
            .take(limit)
            .filter_map(|near| {
                let name = active.state.refs.get_or_assign(&page_state.document, near.item)?;
                let states = match near.item.states.is_empty() {
                    true => String::new(),
                    false => format!(" ({})", near.item.states.join(", ")),
                };
                let label = sanitize::truncate(&near.item.name, 120);
                Some(format!("{} {label:?} [ref={name}]{states}", near.item.role))
            })
            .collect();
        Ok(Output {
            truncated: all.len() > found.len() || page_state.note.is_some(),
            total: all.len(),
            found,
        })
    }
}
