//! Resolves an element by ref, selector or text.

use crate::browser_sessions::{ActiveSession, PageState};
use crate::engine::Node;
use crate::sanitize::truncate;
use crate::snapshot::{ItemMatch, PageItem, RefTarget, closest_items, find_items};
use octo_toolkit::ToolError;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of suggestions if no element or too many match.
const MAX_SUGGESTIONS: usize = 5;
/// The same for elements with the same text, which only their surroundings distinguish.
const MAX_AMBIGUOUS: usize = 10;

const BLANK_URL: &str = "about:blank";

/// Target of an action; exactly one of the fields is given.
#[derive(Debug, Clone, Copy, Default)]
pub struct ElementTarget<'a> {
    pub reference: Option<&'a str>,
    pub selector: Option<&'a str>,
    pub text: Option<&'a str>,
    /// Accepted parameters, for error messages.
    pub accepted: &'static str,
}

enum Locator<'a> {
    Ref(&'a str),
    Selector(&'a str),
    Text(&'a str),
}

impl<'a> ElementTarget<'a> {
    /// For tools that take a ref or a selector.
    pub fn ref_or_selector() -> Self {
        Self { accepted: "ref or selector", ..Self::default() }
    }

    /// Whether no target is given.
    pub fn is_none(&self) -> bool {
        self.reference.is_none() && self.selector.is_none() && self.text.is_none()
    }

    fn locator(&self) -> Result<Locator<'a>, ToolError> {
        match (self.reference, self.selector, self.text) {
            (Some(reference), None, None) => Ok(Locator::Ref(reference)),
            (None, Some(selector), None) => Ok(Locator::Selector(selector)),
            (None, None, Some(text)) => Ok(Locator::Text(text)),
            (None, None, None) => Err(ToolError::invalid(format!("No element: set {}.", self.accepted))
                .hint("Refs are listed by browser_snapshot and browser_find.")),
            _ => Err(ToolError::invalid(format!("Set only one of {}.", self.accepted))
                .hint("A ref is exact; prefer it.")),
        }
    }
}

impl ActiveSession {
    /// Finds the element, waiting for it until the timeout.
    pub async fn find_element(
        &mut self,
        target: ElementTarget<'_>,
        timeout: Duration,
    ) -> Result<Node, ToolError> {
        let by = target.locator()?;
        let end = Instant::now() + timeout;
        loop {
            let found = match by {
                Locator::Ref(reference) => return self.by_ref(reference).await,
                Locator::Selector(selector) => self.by_selector(selector).await?,
                Locator::Text(text) => self.by_text(text).await?,
            };
            if let Some(node) = found {
                return Ok(node);
            }
            if Instant::now() >= end {
                break;
            }
            self.page.wait_for_change(end).await?;
        }
        let page_state = self.page_state().await?;
        if page_state.url == BLANK_URL {
            return Err(no_page_error());
        }
        match by {
            Locator::Text(text) => Err(self.no_match_error(&page_state, &format!("has text {text:?}"), text)),
            Locator::Selector(selector) => {
                Err(self.no_match_error(&page_state, &format!("matches `{selector}`"), selector))
            }
            Locator::Ref(reference) => Err(unknown_ref_error(reference)),
        }
    }

    /// The element of a ref, if it still exists.
    pub async fn by_ref(&mut self, reference: &str) -> Result<Node, ToolError> {
        let Some(known) = self.state.refs.find(reference).cloned() else {
            return Err(match self.page.location().await {
                Ok((url, _)) if url == BLANK_URL => no_page_error(),
                _ => unknown_ref_error(reference),
            });
        };
        let (tab, _) = known.document.split_once('/').unwrap_or_default();
        if tab != self.page.id() {
            let tabs = self.session.tabs().await?;
            return Err(match tabs.iter().position(|open| open.id == tab) {
                Some(index) => ToolError::invalid(format!("{reference} is in another tab.")).hint(format!(
                    "Select tab {index} with browser_tabs first, or take a snapshot of this one with browser_snapshot."
                )),
                None => ToolError::not_found(format!("{reference} was in a tab that is closed.")).hint(
                    "List the open tabs with browser_tabs, or open the page again with browser_navigate.",
                ),
            });
        }
        let document = format!("{tab}/{}", self.page.document());
        if *known.document == *document && self.page.is_attached(&known.node).await {
            return Ok(known.node);
        }
        let page_state = self.page_state().await?;
        Err(self.stale_ref_error(&page_state, reference, &known))
    }

    /// A stale ref is never resolved to another element; the most similar one is only suggested.
    fn stale_ref_error(&mut self, page_state: &PageState, reference: &str, known: &RefTarget) -> ToolError {
        let near = closest_items(&page_state.tree, &known.role, &known.name, 1);
        let hint = match self.describe_matches(page_state, near.into_iter()).as_str() {
            "" => "Take a new snapshot with browser_snapshot.".to_owned(),
            near => format!(
                "The most similar element is {near}. Use it if it is the right one, else browser_snapshot."
            ),
        };
        let name = truncate(&known.name, 60);
        ToolError::not_found(format!("{reference} ({} {name:?}) is no longer on the page.", known.role))
            .hint(hint)
    }

    async fn by_selector(&self, selector: &str) -> Result<Option<Node>, ToolError> {
        let found = self.page.query(selector, 20).await?;
        let rects = self.page.rects(&found).await?;
        let shown = found.iter().zip(&rects).find(|(_, rect)| rect.is_some()).map(|(node, _)| node);
        // A hidden element gives a better error message than none.
        Ok(shown.or(found.first()).cloned())
    }

    async fn by_text(&mut self, text: &str) -> Result<Option<Node>, ToolError> {
        let page_state = self.page_state().await?;
        let found = find_items(&page_state.tree, Some(text), None);
        let best = found.iter().map(|near| near.score).max().unwrap_or_default();
        let best: Vec<ItemMatch> = found.iter().filter(|near| near.score == best).copied().collect();
        match best.as_slice() {
            [] => Ok(None),
            [only] => Ok(only.item.node.clone()),
            several => {
                let many = several.len();
                let list = self.describe_ambiguous(&page_state, several);
                Err(ToolError::invalid(format!("{many} elements have text {text:?}."))
                    .hint(format!("Use the ref of one of them: {list}.")))
            }
        }
    }

    fn no_match_error(&mut self, page_state: &PageState, how: &str, name: &str) -> ToolError {
        let near = closest_items(&page_state.tree, "", name, MAX_SUGGESTIONS);
        let hint = match self.describe_matches(page_state, near.into_iter()).as_str() {
            "" => "Take a snapshot with browser_snapshot, or search with browser_find.".to_owned(),
            near => format!("Similar elements: {near}."),
        };
        ToolError::not_found(format!("No element {how}.")).hint(hint)
    }

    fn describe_matches<'a>(
        &mut self,
        page_state: &PageState,
        found: impl Iterator<Item = ItemMatch<'a>>,
    ) -> String {
        let said: Vec<String> = found
            .take(MAX_SUGGESTIONS)
            .filter_map(|near| self.describe_item(&page_state.document, near.item))
            .collect();
        said.join(", ")
    }

    /// Describes elements with the same text, each with its surrounding text.
    pub fn describe_ambiguous(&mut self, page_state: &PageState, found: &[ItemMatch<'_>]) -> String {
        let said = found.iter().take(MAX_AMBIGUOUS).filter_map(|near| {
            let told = self.describe_item(&page_state.document, near.item)?;
            let around = near.item.node.as_ref().and_then(|node| page_state.tree.surrounding_text(node));
            Some(match around {
                Some(around) => format!("{told} beside {:?}", truncate(&around, 60)),
                None => told,
            })
        });
        let mut said: Vec<String> = said.collect();
        if found.len() > MAX_AMBIGUOUS {
            said.push(format!("and {} more", found.len() - MAX_AMBIGUOUS));
        }
        said.join(", ")
    }

    /// Describes an element for a message.
    pub fn describe_item(&mut self, document: &Arc<str>, item: &PageItem) -> Option<String> {
        let name = self.state.refs.get_or_assign(document, item)?;
        Some(format!("{} {:?} [ref={name}]", item.role, truncate(&item.name, 60)))
    }
}

/// Error after the browser was closed or has exited.
fn no_page_error() -> ToolError {
    ToolError::not_found("No page is open in this tab.").hint("Open one with browser_navigate first.")
}

fn unknown_ref_error(reference: &str) -> ToolError {
    ToolError::not_found(format!("Ref not found: {:?}.", truncate(reference, 20)))
        .hint("Refs look like e12 and are listed by browser_snapshot.")
}
