//! `browser_snapshot`.

use crate::browser_defaults;
use crate::browser_sessions::BrowserSessions;
use crate::snapshot::{RenderOptions, render};
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Shows the page as a short tree with a ref for every element to act on, the viewport first; what is folded names the
/// part to ask for. Prefer browser_find when you know what you look for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Gives everything, nothing folded or cut.
    #[serde(default)]
    full: bool,
    /// Only what is in the element with this ref.
    #[serde(default)]
    part: Option<String>,
    /// Skips so many entries of the part or page, to go on where it was folded.
    #[serde(default)]
    from: u64,
    /// Tokens of the snapshot, about; the elements in the viewport are always there.
    #[serde(default = "browser_defaults::default_snapshot_tokens")]
    max_tokens: u64,
    /// The session, when it has a name.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Address of the page.
    url: String,
    /// Title of the page.
    title: String,
    /// One line for each element: role, name, ref, states.
    snapshot: String,
    /// True when something is folded or cut.
    truncated: bool,
    /// What is left out, and what else is to be known of the page, such as that it is too large to be read whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub struct TakeSnapshot(pub BrowserSessions);

impl Tool for TakeSnapshot {
    const NAME: &'static str = "browser_snapshot";
    const TITLE: &'static str = "Look at the page";
    const EFFECT: Effect = Effect::reads().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("The page in short", json!({})),
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
                ToolError::not_found("That element holds nothing that is worth showing.")
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
