//! `browser_scroll`.

use crate::after::After;
use crate::browser::Browser;
use crate::engine::World;
use crate::given;
use crate::snapshot::{Ask, render};
use crate::target::Target;
use octo_toolkit::{Chromium, Cx, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// Scrolls the page, or what is under an element, and shows what is in view then, with refs, and how far down that is. Prefer
/// browser_find to reach something you know.
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
    /// The session, when it has a name.
    #[serde(default)]
    session: Option<String>,
}

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
        vec![Example::new("Further down", json!({}))]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &Cx) -> Result<After, ToolError> {
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
        open.page.scroll(over.as_ref(), dx, dy).await?;
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
