//! Which element is meant: by ref, by selector or by its text.

use crate::browser::{Look, Open};
use crate::clean::cut;
use crate::engine::Node;
use crate::snapshot::{Item, Known, Near, nearest, wanted};
use octo_toolkit::ToolError;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Elements that are named when none or too many fit.
const FEW: usize = 5;
/// The same for elements that say the same, since only their surroundings tell them apart.
const MANY: usize = 10;

const BLANK: &str = "about:blank";

/// Exactly one of these is given.
#[derive(Debug, Clone, Copy, Default)]
pub struct Target<'a> {
    pub reference: Option<&'a str>,
    pub selector: Option<&'a str>,
    pub text: Option<&'a str>,
    /// Other words by which it may be named in the message.
    pub ways: &'static str,
}

enum By<'a> {
    Ref(&'a str),
    Selector(&'a str),
    Text(&'a str),
}

impl<'a> Target<'a> {
    /// For tools that take a ref or a selector.
    pub fn one() -> Self {
        Self { ways: "ref or selector", ..Self::default() }
    }

    /// Whether nothing is named.
    pub fn is_none(&self) -> bool {
        self.reference.is_none() && self.selector.is_none() && self.text.is_none()
    }

    fn by(&self) -> Result<By<'a>, ToolError> {
        match (self.reference, self.selector, self.text) {
            (Some(reference), None, None) => Ok(By::Ref(reference)),
            (None, Some(selector), None) => Ok(By::Selector(selector)),
            (None, None, Some(text)) => Ok(By::Text(text)),
            (None, None, None) => Err(ToolError::invalid(format!("Which element? Give {}.", self.ways))
                .hint("Refs stand in browser_snapshot and in what browser_find gives.")),
            _ => Err(ToolError::invalid(format!("Give only one of {}.", self.ways))
                .hint("A ref is exact; prefer it.")),
        }
    }
}

impl Open {
    /// The element that is meant, waited for within the time.
    pub async fn find(&mut self, target: Target<'_>, patience: Duration) -> Result<Node, ToolError> {
        let by = target.by()?;
        let end = Instant::now() + patience;
        loop {
            let found = match by {
                By::Ref(reference) => return self.by_ref(reference).await,
                By::Selector(selector) => self.by_selector(selector).await?,
                By::Text(text) => self.by_text(text).await?,
            };
            if let Some(node) = found {
                return Ok(node);
            }
            if Instant::now() >= end {
                break;
            }
            self.page.stirred(end).await?;
        }
        let look = self.look().await?;
        if look.url == BLANK {
            return Err(empty());
        }
        match by {
            By::Text(text) => Err(self.nothing(&look, &format!("says {text:?}"), text)),
            By::Selector(selector) => Err(self.nothing(&look, &format!("fits `{selector}`"), selector)),
            By::Ref(reference) => Err(unknown(reference)),
        }
    }

    /// The element of a ref, as long as it lives.
    pub async fn by_ref(&mut self, reference: &str) -> Result<Node, ToolError> {
        let Some(known) = self.memory.refs.find(reference).cloned() else {
            return Err(match self.page.location().await {
                Ok((url, _)) if url == BLANK => empty(),
                _ => unknown(reference),
            });
        };
        let (tab, _) = known.document.split_once('/').unwrap_or_default();
        if tab != self.page.id() {
            let tabs = self.session.tabs().await?;
            return Err(match tabs.iter().position(|open| open.id == tab) {
                Some(index) => ToolError::invalid(format!("{reference} is in another tab.")).hint(format!(
                    "Select tab {index} with browser_tabs first, or look at this one with browser_snapshot."
                )),
                None => ToolError::not_found(format!("{reference} was in a tab that is closed.")).hint(
                    "See which tabs are open with browser_tabs, or open the page again with browser_navigate.",
                ),
            });
        }
        let document = format!("{tab}/{}", self.page.document());
        if *known.document == *document && self.page.is_alive(&known.node).await {
            return Ok(known.node);
        }
        let look = self.look().await?;
        Err(self.gone(&look, reference, &known))
    }

    /// A ref whose element is gone is never taken for another one; the nearest is only named.
    fn gone(&mut self, look: &Look, reference: &str, known: &Known) -> ToolError {
        let near = nearest(&look.tree, &known.role, &known.name, 1);
        let hint = match self.listed(look, near.into_iter()).as_str() {
            "" => "Look at the page again with browser_snapshot.".to_owned(),
            near => format!("The nearest now is {near}. Use it if it is the one, else browser_snapshot."),
        };
        let name = cut(&known.name, 60);
        ToolError::not_found(format!("{reference} ({} {name:?}) is gone from the page.", known.role))
            .hint(hint)
    }

    async fn by_selector(&self, selector: &str) -> Result<Option<Node>, ToolError> {
        let found = self.page.query(selector, 20).await?;
        let rects = self.page.rects(&found).await?;
        let shown = found.iter().zip(&rects).find(|(_, rect)| rect.is_some()).map(|(node, _)| node);
        // An element that is not shown gives a better message than none at all.
        Ok(shown.or(found.first()).cloned())
    }

    async fn by_text(&mut self, text: &str) -> Result<Option<Node>, ToolError> {
        let look = self.look().await?;
        let found = wanted(&look.tree, Some(text), None);
        let best = found.iter().map(|near| near.fit).max().unwrap_or_default();
        let best: Vec<Near> = found.iter().filter(|near| near.fit == best).copied().collect();
        match best.as_slice() {
            [] => Ok(None),
            [only] => Ok(only.item.node.clone()),
            several => {
                let many = several.len();
                let list = self.told_apart(&look, several);
                Err(ToolError::invalid(format!("{many} elements say {text:?}."))
                    .hint(format!("Give the ref of one of them: {list}.")))
            }
        }
    }

    fn nothing(&mut self, look: &Look, how: &str, name: &str) -> ToolError {
        let near = nearest(&look.tree, "", name, FEW);
        let hint = match self.listed(look, near.into_iter()).as_str() {
            "" => "Look at the page with browser_snapshot, or search it with browser_find.".to_owned(),
            near => format!("Near: {near}."),
        };
        ToolError::not_found(format!("Nothing on the page {how}.")).hint(hint)
    }

    fn listed<'a>(&mut self, look: &Look, found: impl Iterator<Item = Near<'a>>) -> String {
        let said: Vec<String> =
            found.take(FEW).filter_map(|near| self.told(&look.document, near.item)).collect();
        said.join(", ")
    }

    /// Elements that say the same, each with what stands around it.
    pub fn told_apart(&mut self, look: &Look, found: &[Near<'_>]) -> String {
        let said = found.iter().take(MANY).filter_map(|near| {
            let told = self.told(&look.document, near.item)?;
            let around = near.item.node.as_ref().and_then(|node| look.tree.context(node));
            Some(match around {
                Some(around) => format!("{told} beside {:?}", cut(&around, 60)),
                None => told,
            })
        });
        let mut said: Vec<String> = said.collect();
        if found.len() > MANY {
            said.push(format!("and {} more", found.len() - MANY));
        }
        said.join(", ")
    }

    /// An element in a sentence.
    pub fn told(&mut self, document: &Arc<str>, item: &Item) -> Option<String> {
        let name = self.memory.refs.of(document, item)?;
        Some(format!("{} {:?} [ref={name}]", item.role, cut(&item.name, 60)))
    }
}

/// Such as after the browser was closed or has ended.
fn empty() -> ToolError {
    ToolError::not_found("No page is open in this tab.").hint("Open one with browser_navigate first.")
}

fn unknown(reference: &str) -> ToolError {
    ToolError::not_found(format!("There is no ref {:?}.", cut(reference, 20)))
        .hint("Refs look like e12 and stand in browser_snapshot.")
}
