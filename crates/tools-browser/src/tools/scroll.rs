//! `browser_scroll`.

use crate::browser_defaults;
use crate::browser_sessions::action_outcome::ActionOutcome;
use crate::browser_sessions::element_target::ElementTarget;
use crate::browser_sessions::{ActiveSession, BrowserSessions};
use crate::engine::{Node, World};
use crate::snapshot::{RenderOptions, find_items, render};
use octo_toolkit::{CallContext, Chromium, Effect, Example, Kind, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::{Duration, Instant};

/// Scrolls the page, or the area under an element, once or until a text is visible, and returns what is in view, with
/// refs, and the scroll position. Prefer browser_find for what the page already contains.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Scroll direction.
    #[serde(default = "default_direction")]
    direction: Direction,
    /// Pixels; by default most of the viewport.
    #[serde(default)]
    amount: Option<u64>,
    /// Ref of the element to scroll instead of the page.
    #[serde(default, rename = "ref")]
    reference: Option<String>,
    /// Scrolls until this text is in view, even if the page loads more while scrolling.
    #[serde(default)]
    until_text: Option<String>,
    /// Maximum milliseconds to scroll until the text is visible.
    #[serde(default = "browser_defaults::default_navigation_timeout_ms")]
    timeout_ms: u64,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

/// Maximum screens of one call.
const MAX_STEPS: usize = 100;
/// Maximum time for a page to load more after scrolling.
const LOAD_MORE_TIMEOUT: Duration = Duration::from_secs(2);
/// Scroll positions and sizes of all scrollable elements.
const SCROLL_EXTENT_JS: &str = "[...document.querySelectorAll('*')].filter(e => e.scrollTop || e.scrollLeft || e === document.scrollingElement)\
                      .slice(0, 100).map(e => [e.scrollTop, e.scrollLeft, e.scrollHeight, e.scrollWidth])";
/// Token budget for what is in view.
const VIEW_TOKEN_BUDGET: usize = 600;
const SCROLL_POSITION_JS: &str = "`In view: ${Math.round(scrollY)} to ${Math.round(scrollY + innerHeight)} of \
                     ${document.documentElement.scrollHeight} pixels.`";

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Up,
    Down,
    Left,
    Right,
}

fn default_direction() -> Direction {
    Direction::Down
}

pub struct Scroll(pub BrowserSessions);

impl Tool for Scroll {
    const NAME: &'static str = "browser_scroll";
    const TITLE: &'static str = "Scroll";
    const KEYWORDS: &'static str = "move down further up more infinite";
    const REQUESTS: &'static [&'static str] = &[
        "move down the page to see more results",
        "go to the bottom of the endless feed until older posts load",
        "bring the footer with the imprint into view",
        "wind the sidebar list up by 400 pixels",
        "keep sliding down until the words Terms of use show up",
        "shift the wide table sideways to see the last columns",
    ];
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = ActionOutcome;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Further down", json!({})),
            Example::new("To a text that loads while scrolling", json!({"until_text": "Terms of use"})),
        ]
    }

    async fn run(
        &self,
        input: Input,
        chromium: Chromium,
        cx: &CallContext,
    ) -> Result<ActionOutcome, ToolError> {
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let over = match &input.reference {
            Some(reference) => {
                let target = ElementTarget { reference: Some(reference), ..ElementTarget::ref_or_selector() };
                Some(
                    active
                        .find_element(
                            target,
                            browser_defaults::clamp_timeout(
                                browser_defaults::default_action_timeout_ms(),
                                cx,
                            ),
                        )
                        .await?,
                )
            }
            None => None,
        };
        let before = active.baseline().await?;
        let (width, height) = active.page.viewport().await?;
        let amount = |most: f64| input.amount.map_or(most * 0.85, |amount| amount.min(1 << 24) as f64);
        let (dx, dy) = match input.direction {
            Direction::Up => (0.0, -amount(height)),
            Direction::Down => (0.0, amount(height)),
            Direction::Left => (-amount(width), 0.0),
            Direction::Right => (amount(width), 0.0),
        };
        match &input.until_text {
            None => active.page.scroll(over.as_ref(), dx, dy).await?,
            Some(text) => {
                let timeout = browser_defaults::clamp_timeout(input.timeout_ms, cx);
                scroll_until(&active, text, over.as_ref(), (dx, dy), timeout).await?;
            }
        }
        let mut after = active.outcome(&before).await?;
        let page_state = active.page_state().await?;
        let options = RenderOptions { budget: Some(VIEW_TOKEN_BUDGET), part: None, from: 0 };
        let page = render(&page_state.tree, options, &mut active.state.refs, &page_state.document);
        (after.page, after.changes, after.truncated) = (Some(page.text), None, page.truncated);
        let place = active.page.evaluate(SCROLL_POSITION_JS, World::Isolated, Duration::from_secs(1)).await;
        after.events.extend(place.ok().and_then(|place| place.as_str().map(str::to_owned)));
        Ok(after)
    }
}

/// Scrolls until a text is in view, or to the end.
async fn scroll_until(
    active: &ActiveSession,
    text: &str,
    over: Option<&Node>,
    (dx, dy): (f64, f64),
    timeout: Duration,
) -> Result<(), ToolError> {
    let end = Instant::now() + timeout;
    let (mut seen, mut still) = (None, 0);
    for _ in 0..MAX_STEPS {
        let page_state = active.page_state().await?;
        let found = find_items(&page_state.tree, Some(text), None);
        if found.iter().any(|near| near.item.visible) {
            return Ok(());
        }
        // It is already on the page, further down or up.
        if let Some(node) = found.iter().find_map(|near| near.item.node.as_ref()) {
            return active.page.scroll_into_view(node).await;
        }
        if Instant::now() >= end {
            return Err(ToolError::new(Kind::Timeout, format!("{text:?} did not appear in time."))
                .hint("Call again to continue from here, or use a longer timeout_ms."));
        }
        // If no scroll position or size changes any more, this is the end.
        let place = active.page.evaluate(SCROLL_EXTENT_JS, World::Isolated, Duration::from_secs(2)).await?;
        still = if seen.as_ref() == Some(&place) { still + 1 } else { 0 };
        if still > 2 {
            return Err(ToolError::not_found(format!("{text:?} not found: this is the end of the page."))
                .hint("Scroll the other way, or search for other words with browser_find."));
        }
        seen = Some(place);
        active.page.scroll(over, dx, dy).await?;
        active.page.settle(LOAD_MORE_TIMEOUT).await?;
        if still > 0 {
            // Loading more may take a while.
            active.page.wait_for_change(end).await?;
        }
    }
    Err(ToolError::not_found(format!("{text:?} did not appear within {MAX_STEPS} screens."))
        .hint("Call again to continue from here."))
}
