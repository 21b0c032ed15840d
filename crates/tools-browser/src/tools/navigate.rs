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

/// Maximum links in a reply.
const MAX_LINKS: usize = 15;
/// Note for a page without any text or element.
const EMPTY_PAGE_NOTE: &str = "The page shows no readable content. It may still be loading: wait with browser_wait, or view it with browser_screenshot.";
/// Token budget for the elements in view.
const SNAPSHOT_TOKEN_BUDGET: usize = 500;

/// Opens a URL in the active tab and returns the page's main text, its links and the elements in view with refs; fails
/// if it cannot be reached or is not allowed. Prefer read_page for reading only.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// URL to open, http or https.
    url: String,
    /// Condition to wait for.
    #[serde(default = "default_wait_until")]
    wait_until: Until,
    /// Also waits for an element that matches this CSS selector.
    #[serde(default)]
    wait_for_selector: Option<String>,
    /// Maximum milliseconds to wait.
    #[serde(default = "browser_defaults::default_navigation_timeout_ms")]
    timeout_ms: u64,
    /// Format of the content; accessibility returns the snapshot instead of text.
    #[serde(default = "default_markdown")]
    output_format: ContentFormat,
    /// Omits navigation, header and footer.
    #[serde(default = "browser_defaults::default_true")]
    extract_main_content: bool,
    /// Whether to list links.
    #[serde(default = "browser_defaults::default_true")]
    include_links: bool,
    /// Whether to include a screenshot of the viewport.
    #[serde(default)]
    screenshot: bool,
    /// Tokens of content.
    #[serde(default = "browser_defaults::default_content_tokens")]
    max_tokens: u64,
    /// Name of a separate session, with its own cookies and tabs.
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
    /// URL of the page, after redirects.
    url: String,
    /// The page's title.
    title: String,
    /// HTTP status of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// The page in the requested format.
    content: String,
    /// The first links of the content.
    links: Vec<PageLink>,
    /// Elements in the viewport, with refs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    /// True if content or links are incomplete; browser_get_content returns more.
    truncated: bool,
    /// What is omitted or differs from the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip)]
    picture: Option<Image>,
}

#[derive(Serialize, JsonSchema)]
struct PageLink {
    /// Text of the link.
    text: String,
    /// Target of the link.
    url: String,
}

pub struct Navigate(pub BrowserSessions);

impl Tool for Navigate {
    const NAME: &'static str = "browser_navigate";
    const TITLE: &'static str = "Open a page";
    const KEYWORDS: &'static str = "go to visit open website page URL";
    const REQUESTS: &'static [&'static str] = &[
        "go to the login page of our shop in the browser",
        "open https://staging.example.com/admin so that i can work in it",
        "pull up the booking site and get ready to act on it",
        "bring the web app up in chrome, fully loaded",
        "visit this address and show the buttons and links on it",
        "start at the home page in a fresh session without cookies",
        "load the dashboard url and hold on until the chart element appears",
    ];
    const EFFECT: Effect = Effect::reads_volatile().open_world();
    const IS_READER: bool = true;
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
            (!navigation.complete).then(|| "The page was still loading at the timeout.".to_owned());
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
