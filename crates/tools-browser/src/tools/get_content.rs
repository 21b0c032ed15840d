//! `browser_get_content`.

use crate::browser_defaults;
use crate::browser_sessions::BrowserSessions;
use crate::browser_sessions::page_content::{ContentFormat, default_accessibility};
use octo_toolkit::reply_budget::prefix_within;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError, json_len};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Returns the current page as its accessibility tree, Markdown, text or HTML; a long one from an offset on. Prefer
/// browser_snapshot to act on it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Format of the content.
    #[serde(default = "default_accessibility")]
    output_format: ContentFormat,
    /// Omits navigation, header and footer.
    #[serde(default)]
    main_only: bool,
    /// Tokens of content.
    #[serde(default = "browser_defaults::default_reading_tokens")]
    max_tokens: u64,
    /// Characters to skip; next of an earlier reply.
    #[serde(default)]
    offset: u64,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

/// Maximum tokens of a page that are processed.
const MAX_PAGE_TOKENS: usize = 500_000;
/// Maximum bytes of the reply besides URL, title and content.
const REPLY_OVERHEAD_BYTES: usize = 120;

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// URL of the page.
    url: String,
    /// Title of the page.
    title: String,
    /// The page in the requested format.
    content: String,
    /// True if this is not all.
    truncated: bool,
    /// Value of offset to continue reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

pub struct GetContent(pub BrowserSessions);

impl Tool for GetContent {
    const NAME: &'static str = "browser_get_content";
    const TITLE: &'static str = "Read the page";
    const KEYWORDS: &'static str = "HTML source text of the page extract";
    const REQUESTS: &'static [&'static str] = &[
        "give me the text of the page that is open, as markdown",
        "read what the logged-in account page says",
        "dump the rendered html of the site after scripts ran",
        "continue reading the open page from where it stopped",
        "extract the main article from the tab without menus",
        "what does the current page say in plain words",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    const IS_READER: bool = true;
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("As Markdown", json!({"output_format": "markdown"}))]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<Output, ToolError> {
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let page_state = active.page_state().await?;
        let budget = browser_defaults::clamp_tokens(input.max_tokens);
        let all =
            active.page_content(&page_state, input.output_format, input.main_only, MAX_PAGE_TOKENS).await?;
        let offset = usize::try_from(input.offset).unwrap_or(usize::MAX);
        let end = offset.saturating_add(budget * crate::snapshot::CHARS_PER_TOKEN);
        let content: String = all.text.chars().skip(offset).take(end - offset).collect();
        let max_bytes = cx
            .reply
            .remaining_after(REPLY_OVERHEAD_BYTES + json_len(&page_state.url) + json_len(&page_state.title));
        let content = prefix_within(&content, max_bytes).to_owned();
        let end = offset.saturating_add(content.chars().count());
        let more = all.text.chars().nth(end).is_some();
        active.record_shown(&page_state);
        let next = more.then_some(end as u64);
        let truncated = more || all.truncated || page_state.note.is_some();
        Ok(Output { url: page_state.url, title: page_state.title, content, truncated, next })
    }
}
