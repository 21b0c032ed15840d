//! `browser_scroll`.

use crate::after::After;
use crate::browser::{Browser, Open};
use crate::engine::{Node, World};
use crate::given;
use crate::snapshot::{Ask, render, wanted};
use crate::target::Target;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Kind, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::{Duration, Instant};

/// Scrolls the page, or what is under an element, once or until a text shows, and gives what is in view then, with refs, and how far
/// down that is. Prefer browser_find for what the page holds already.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Where to.
    #[serde(default = "down")]
    direction: Direction,
    /// Pixels; without it most of the viewport.
    #[serde(default)]
    amount: Option<u64>,
    /// Ref of the element to scroll instead of the page.
    #[serde(default, rename = "ref")]
    reference: Option<String>,
    /// Scrolls on until this text is in view, also where the page loads more on the way.
    #[serde(default)]
    until_text: Option<String>,
    /// Most milliseconds to scroll until the text shows.
    #[serde(default = "given::half_a_minute")]
    timeout_ms: u64,
    /// The session, when it has a name.
    #[serde(default)]
    session: Option<String>,
}

/// Screens of one call.
const MAX_STEPS: usize = 100;
/// How long a page may take to load more once it was scrolled.
const LOADING: Duration = Duration::from_secs(2);
/// How far everything is scrolled, and how much there is of it.
const EXTENT: &str = "[...document.querySelectorAll('*')].filter(e => e.scrollTop || e.scrollLeft || e === document.scrollingElement)\
                      .slice(0, 100).map(e => [e.scrollTop, e.scrollLeft, e.scrollHeight, e.scrollWidth])";
/// Tokens for what is in view.
const IN_VIEW: usize = 600;
const PLACE: &str = "`In view: ${Math.round(scrollY)} to ${Math.round(scrollY + innerHeight)} of \
                     ${document.documentElement.scrollHeight} pixels.`";

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Up,
    Down,
    Left,
    Right,
}

fn down() -> Direction {
    Direction::Down
}

pub struct Scroll(pub Browser);

impl Tool for Scroll {
    const NAME: &'static str = "browser_scroll";
    const TITLE: &'static str = "Scroll";
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = After;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Further down", json!({})),
            Example::new("To a text that is loaded on the way", json!({"until_text": "Terms of use"})),
        ]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<After, ToolError> {
        let mut open = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let over = match &input.reference {
            Some(reference) => {
                let target = Target { reference: Some(reference), ..Target::one() };
                Some(open.find(target, given::within(given::five_seconds(), cx)).await?)
            }
            None => None,
        };
        let before = open.before().await?;
        let (width, height) = open.page.viewport().await?;
        let amount = |most: f64| input.amount.map_or(most * 0.85, |amount| amount.min(1 << 24) as f64);
        let (dx, dy) = match input.direction {
            Direction::Up => (0.0, -amount(height)),
            Direction::Down => (0.0, amount(height)),
            Direction::Left => (-amount(width), 0.0),
            Direction::Right => (amount(width), 0.0),
        };
        match &input.until_text {
            None => open.page.scroll(over.as_ref(), dx, dy).await?,
            Some(text) => {
                let patience = given::within(input.timeout_ms, cx);
                until(&open, text, over.as_ref(), (dx, dy), patience).await?;
            }
        }
        let mut after = open.after(&before).await?;
        let look = open.look().await?;
        let ask = Ask { budget: Some(IN_VIEW), part: None, from: 0 };
        let page = render(&look.tree, ask, &mut open.memory.refs, &look.document);
        (after.page, after.changes, after.truncated) = (Some(page.text), None, page.truncated);
        let place = open.page.evaluate(PLACE, World::Isolated, Duration::from_secs(1)).await;
        after.events.extend(place.ok().and_then(|place| place.as_str().map(str::to_owned)));
        Ok(after)
    }
}

/// Scrolls until a text is in view, or to the end.
async fn until(
    open: &Open,
    text: &str,
    over: Option<&Node>,
    (dx, dy): (f64, f64),
    patience: Duration,
) -> Result<(), ToolError> {
    let end = Instant::now() + patience;
    let (mut seen, mut still) = (None, 0);
    for _ in 0..MAX_STEPS {
        let look = open.look().await?;
        let found = wanted(&look.tree, Some(text), None);
        if found.iter().any(|near| near.item.shown) {
            return Ok(());
        }
        // It is on the page already, further down or up.
        if let Some(node) = found.iter().find_map(|near| near.item.node.as_ref()) {
            return open.page.show(node).await;
        }
        if Instant::now() >= end {
            return Err(ToolError::new(Kind::Timeout, format!("{text:?} did not show in time."))
                .hint("Call again to go on from here, or with a longer timeout_ms."));
        }
        // The page and all that is in it, in pixels: when none of it moves or grows, this is the end.
        let place = open.page.evaluate(EXTENT, World::Isolated, Duration::from_secs(2)).await?;
        still = if seen.as_ref() == Some(&place) { still + 1 } else { 0 };
        if still > 2 {
            return Err(ToolError::not_found(format!("{text:?} is not there: this is the end of the page."))
                .hint("Scroll the other way, or search with browser_find for other words."));
        }
        seen = Some(place);
        open.page.scroll(over, dx, dy).await?;
        open.page.settle(LOADING).await?;
        if still > 0 {
            // What loads more may take its time.
            open.page.stirred(end).await?;
        }
    }
    Err(ToolError::not_found(format!("{text:?} did not show within {MAX_STEPS} screens."))
        .hint("Call again to go on from here."))
}
