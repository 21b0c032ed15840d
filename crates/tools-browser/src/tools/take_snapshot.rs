//! `browser_snapshot`.

use crate::browser_defaults;
use crate::browser_sessions::BrowserSessions;
use crate::snapshot::{RenderOptions, render};
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Returns the page as a short tree with a ref for every actionable element, the viewport first; folded parts name the
/// parameters to request them. Prefer browser_find when you know what you look for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Returns everything, nothing folded or truncated.
    #[serde(default)]
    full: bool,
    /// Only the content of the element with this ref.
    #[serde(default)]
    part: Option<String>,
    /// Entries of the part or page to skip, to continue where it was folded.
    #[serde(default)]
    from: u64,
    /// Approximate tokens of the snapshot; elements in the viewport are always included.
    #[serde(default = "browser_defaults::default_snapshot_tokens")]
    max_tokens: u64,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// URL of the page.
    url: String,
    /// Title of the page.
    title: String,
    /// One line for each element: role, name, ref, states.
    snapshot: String,
    /// True if something is folded or truncated.
    truncated: bool,
    /// What is omitted, and other notes, such as that the page is too large to read completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub struct TakeSnapshot(pub BrowserSessions);

impl Tool for TakeSnapshot {
    const NAME: &'static str = "browser_snapshot";
    const TITLE: &'static str = "Take a snapshot of the page";
    const KEYWORDS: &'static str = "accessibility tree elements on the page look";
    const REQUESTS: &'static [&'static str] = &[
        "what can i press or fill on the current page",
        "give me an overview of the controls currently on screen",
        "look again at the page's controls after the change",
        "before acting, see the structure of buttons, links and inputs",
        "unfold the rest of that collapsed list on the page",
        "show the whole element tree with nothing left out",
        "get element ids for everything actionable on this screen",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    const IS_READER: bool = true;
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Short snapshot of the page", json!({})),
            Example::new("More of a list", json!({"part": "e40", "from": 12})),
        ]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<Output, ToolError> {
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let part = match &input.part {
            Some(part) => Some(active.by_ref(part).await?),
            None => None,
        };
        let page_state = active.page_state().await?;
        let part = match part {
            Some(node) => Some(page_state.tree.find(&node).ok_or_else(|| {
                ToolError::not_found("That element has no visible content.")
                    .hint("Take the snapshot without part.")
            })?),
            None => None,
        };
        let budget = (!input.full).then(|| browser_defaults::clamp_tokens(input.max_tokens));
        let options = RenderOptions { budget, part, from: usize::try_from(input.from).unwrap_or(usize::MAX) };
        let rendered = render(&page_state.tree, options, &mut active.state.refs, &page_state.document);
        active.record_shown(&page_state);
        Ok(Output {
            url: page_state.url,
            title: page_state.title,
            truncated: rendered.truncated || page_state.note.is_some(),
            note: page_state.note.or_else(|| rendered.note()),
            snapshot: rendered.text,
        })
    }
}
