//! Page content in the requested format.

use crate::browser_sessions::{ActiveSession, PageState};
use crate::sanitize;
use crate::snapshot::{CHARS_PER_TOKEN, RenderOptions, markdown, plain_text, render};
use octo_toolkit::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContentFormat {
    Markdown,
    Text,
    Html,
    Accessibility,
}

pub fn default_markdown() -> ContentFormat {
    ContentFormat::Markdown
}

pub fn default_accessibility() -> ContentFormat {
    ContentFormat::Accessibility
}

/// Maximum characters of HTML.
const MAX_HTML_CHARS: usize = 2 << 20;

/// Content of a page, and whether it is truncated.
pub struct PageContent {
    pub text: String,
    pub truncated: bool,
    /// What is omitted.
    pub note: Option<String>,
}

impl ActiveSession {
    /// Content of the page within a token budget.
    pub async fn page_content(
        &mut self,
        page_state: &PageState,
        format: ContentFormat,
        main_only: bool,
        budget: usize,
    ) -> Result<PageContent, ToolError> {
        let text = match format {
            ContentFormat::Accessibility => {
                let options = RenderOptions { budget: Some(budget), part: None, from: 0 };
                let page = render(&page_state.tree, options, &mut self.state.refs, &page_state.document);
                return Ok(PageContent { note: page.note(), truncated: page.truncated, text: page.text });
            }
            ContentFormat::Markdown => markdown(&page_state.tree, main_only),
            ContentFormat::Text => plain_text(&page_state.tree, main_only),
            ContentFormat::Html => sanitize::multi_line(&self.page.html(MAX_HTML_CHARS).await?),
        };
        let short = sanitize::truncate(&text, budget * CHARS_PER_TOKEN);
        let truncated = short.len() < text.len();
        let note = truncated.then(|| {
            let (here, all) = (short.chars().count() - 1, text.chars().count());
            format!(
                "The content is the first {here} of {all} characters; browser_get_content returns the rest."
            )
        });
        Ok(PageContent { truncated, text: short, note })
    }
}
