//! `browser_navigate`.

use crate::browser::Browser;
use crate::engine::{Shot, WaitUntil};
use crate::show::{Format, as_markdown};
use crate::snapshot::{Ask, links, render};
use crate::target::Target;
use crate::{clean, given, screenshot};
use octo_toolkit::{CallContext, Chromium, Effect, Example, Image, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Links that are listed.
const LINKS: usize = 15;
/// Said of a page without any text or element.
const NOTHING_SHOWN: &str = "The page shows nothing that can be read. It may still be filling itself: wait with browser_wait, or see it with browser_screenshot.";
/// Tokens for the elements to go on with.
const ELEMENTS: usize = 500;

/// Opens an address in the active tab and gives the page's main text, its links and the elements in view with refs;
/// fails when it cannot be reached or is not allowed. Prefer read_page for reading only.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Address to open, http or https.
    url: String,
    /// Until when to wait.
    #[serde(default = "idle")]
    wait_until: Until,
    /// Waits for an element that fits this CSS selector, too.
    #[serde(default)]
    wait_for_selector: Option<String>,
    /// Most milliseconds to wait.
    #[serde(default = "given::half_a_minute")]
    timeout_ms: u64,
    /// Form of the content; accessibility gives the snapshot instead of text.
    #[serde(default = "as_markdown")]
    output_format: Format,
    /// Leaves out navigation, header and footer.
    #[serde(default = "given::yes")]
    extract_main_content: bool,
    /// Whether links are listed.
    #[serde(default = "given::yes")]
    include_links: bool,
    /// Whether a picture of the viewport comes along.
    #[serde(default)]
    screenshot: bool,
    /// Tokens of content.
    #[serde(default = "given::content")]
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

fn idle() -> Until {
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
    links: Vec<Linked>,
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
struct Linked {
    /// What the link says.
    text: String,
    /// Where it leads.
    url: String,
}

pub struct Navigate(pub Browser);

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
        let mut open = self.0.open_anew(&chromium, input.session.as_deref(), cx).await?;
        let patience = given::within(input.timeout_ms, cx);
        let went = open.page.navigate(&input.url, input.wait_until.into(), patience).await?;
        let mut note =
            (!went.complete).then(|| "The page was still loading when the time was over.".to_owned());
        if let Some(selector) = &input.wait_for_selector {
            let target = Target { selector: Some(selector), ..Target::default() };
            let left = given::within(input.timeout_ms, cx);
            if let Err(error) = open.find(target, left).await {
                note = Some(error.text());
            }
        }
        let look = open.look().await?;
        note = note.or_else(|| look.note.clone());
        if look.tree.items.is_empty() && !input.screenshot {
            note = note.or_else(|| Some(NOTHING_SHOWN.to_owned()));
        }
        let budget = given::budget(input.max_tokens);
        let shown = open.show(&look, input.output_format, input.extract_main_content, budget).await?;
        let snapshot = (input.output_format != Format::Accessibility).then(|| {
            let ask = Ask { budget: Some(ELEMENTS), part: None, from: 0 };
            render(&look.tree, ask, &mut open.memory.refs, &look.document).text
        });
        let all = match input.include_links {
            true => links(&look.tree, input.extract_main_content),
            false => Vec::new(),
        };
        let truncated = shown.truncated || all.len() > LINKS || look.note.is_some();
        let fewer = (all.len() > LINKS).then(|| format!("{LINKS} of {} links are listed.", all.len()));
        let notes: Vec<String> = note.into_iter().chain(shown.note).chain(fewer).collect();
        let links = all
            .into_iter()
            .take(LINKS)
            .map(|link| Linked { text: clean::cut(&link.text, 60), url: clean::cut(&link.url, 300) });
        let picture = match input.screenshot {
            true => Some(screenshot::picture(&open.page, &Shot::Viewport).await?.picture),
            false => None,
        };
        open.remember(&look);
        Ok(Output {
            url: look.url,
            title: look.title,
            status: went.status,
            content: shown.text,
            links: links.collect(),
            snapshot,
            truncated,
            note: (!notes.is_empty()).then(|| notes.join(" ")),
            picture,
        })
    }
}
