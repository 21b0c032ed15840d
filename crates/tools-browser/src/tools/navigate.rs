//! `browser_navigate`.

use crate::browser_sessions::BrowserSessions;
use crate::browser_sessions::element_target::ElementTarget;
use crate::browser_sessions::page_content::{ContentFormat, default_markdown};
use crate::engine::{CaptureArea, WaitUntil};
use crate::snapshot::{RenderOptions, links, render};
use crate::tools::screenshot;
use crate::{browser_defaults, sanitize};
use octo_toolkit::{CallContext, Chromium, Effect, Example, Image, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Links that are listed.
const MAX_LINKS: usize = 15;
/// Said of a page without any text or element.
const EMPTY_PAGE_NOTE: &str = "The page shows nothing that can be read. It may still be filling itself: wait with browser_wait, or see it with browser_screenshot.";
/// Tokens for the elements to go on with.
const SNAPSHOT_TOKEN_BUDGET: usize = 500;

/// Opens an address in the active tab and gives the page's main text, its links and the elements in view with refs;
/// fails when it cannot be reached or is not allowed. Prefer read_page for reading only.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Address to open, http or https.
    url: String,
    /// Until when to wait.
    #[serde(default = "default_wait_until")]
    wait_until: Until,
    /// Waits for an element that fits this CSS selector, too.
    #[serde(default)]
    wait_for_selector: Option<String>,
    /// Most milliseconds to wait.
    #[serde(default = "browser_defaults::default_navigation_timeout_ms")]
    timeout_ms: u64,
    /// Form of the content; accessibility gives the snapshot instead of text.
    #[serde(default = "default_markdown")]
    output_format: ContentFormat,
    /// Leaves out navigation, header and footer.
    #[serde(default = "browser_defaults::default_true")]
    extract_main_content: bool,
    /// Whether links are listed.
    #[serde(default = "browser_defaults::default_true")]
    include_links: bool,
    /// Whether a picture of the viewport comes along.
    #[serde(default)]
    screenshot: bool,
    /// Tokens of content.
    #[serde(default = "browser_defaults::default_content_tokens")]
    max_tokens: u64,
    /// A session of its own by name, with its own cookies and tabs.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    Load,
    DomContentLoaded,
    NetworkIdle,
}

fn default_wait_until() -> Until {
    Until::NetworkIdle
}

impl From<Until> for WaitUntil {
    fn from(until: Until) -> Self {
        match until {
            Until::Load => Self::Load,
            Until::DomContentLoaded => Self::DomContentLoaded,
            Until::NetworkIdle => Self::NetworkIdle,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Where the browser is, after redirects.
    url: String,
    /// The page's title.
    title: String,
    /// HTTP status of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// The page in the form that was asked for.
    content: String,
    /// The first links of the content.
    links: Vec<PageLink>,
    /// What the viewport shows, with refs to act on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    /// True when content or links are not all; browser_get_content gives more.
    truncated: bool,
    /// What is left out or was not as asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip)]
    picture: Option<Image>,
}

#[derive(Serialize, JsonSchema)]
struct PageLink {
    /// What the link says.
    text: String,
    /// Where it leads.
    url: String,
}

pub struct Navigate(pub BrowserSessions);

impl Tool for Navigate {
    const NAME: &'static str = "browser_navigate";
    const TITLE: &'static str = "Open a page";
    const EFFECT: Effect = Effect::reads_volatile().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Open a page", json!({"url": "https://example.com/"})),
            Example::new(
                "Open a page to act on it",
                json!({"url": "https://example.com/", "output_format": "accessibility", "include_links": false}),
            ),
        ]
    }

    fn images(output: &Output) -> Vec<Image> {
        output.picture.iter().cloned().collect()
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<Output, ToolError> {
        let mut active = self.0.open_ignoring_crash(&chromium, input.session.as_deref(), cx).await?;
        let timeout = browser_defaults::clamp_timeout(input.timeout_ms, cx);
        let navigation = active.page.navigate(&input.url, input.wait_until.into(), timeout).await?;
        let mut note =
            (!navigation.complete).then(|| "The page was still loading when the time was over.".to_owned());
        if let Some(selector) = &input.wait_for_selector {
            let target = ElementTarget { selector: Some(selector), ..ElementTarget::default() };
            let left = browser_defaults::clamp_timeout(input.timeout_ms, cx);
            if let Err(error) = active.find_element(target, left).await {
                note = Some(error.text());
            }
        }
        let page_state = active.page_state().await?;
        note = note.or_else(|| page_state.note.clone());
        if page_state.tree.items.is_empty() && !input.screenshot {
            note = note.or_else(|| Some(EMPTY_PAGE_NOTE.to_owned()));
        }
        let budget = browser_defaults::clamp_tokens(input.max_tokens);
        let content =
            active.page_content(&page_state, input.output_format, input.extract_main_content, budget).await?;
        let snapshot = (input.output_format != ContentFormat::Accessibility).then(|| {
            let options = RenderOptions { budget: Some(SNAPSHOT_TOKEN_BUDGET), part: None, from: 0 };
            render(&page_state.tree, options, &mut active.state.refs, &page_state.document).text
        });
        let all = match input.include_links {
            true => links(&page_state.tree, input.extract_main_content),
            false => Vec::new(),
        };
        let truncated = content.truncated || all.len() > MAX_LINKS || page_state.note.is_some();
        let fewer =
            (all.len() > MAX_LINKS).then(|| format!("{MAX_LINKS} of {} links are listed.", all.len()));
        let notes: Vec<String> = note.into_iter().chain(content.note).chain(fewer).collect();
        let links = all.into_iter().take(MAX_LINKS).map(|link| PageLink {
            text: sanitize::truncate(&link.text, 60),
            url: sanitize::truncate(&link.url, 300),
        });
        let picture = match input.screenshot {
            true => Some(screenshot::capture_picture(&active.page, &CaptureArea::Viewport).await?.picture),
            false => None,
        };
        active.record_shown(&page_state);
        Ok(Output {
            url: page_state.url,
            title: page_state.title,
            status: navigation.status,
            content: content.text,
            links: links.collect(),
            snapshot,
            truncated,
            note: (!notes.is_empty()).then(|| notes.join(" ")),
            picture,
        })
    }
}
