//! Outcome of an action: what changed on the page, with refs, instead of the whole page.

use crate::browser_sessions::{ActiveSession, PageState};
use crate::sanitize;
use crate::snapshot::{FILE_FIELD_ROLE, PageItem, RenderOptions, changes, render};
use octo_toolkit::{Kind, ToolError};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// Token budget for changes.
const CHANGES_TOKEN_BUDGET: usize = 400;
/// Token budget for a new page.
const PAGE_TOKEN_BUDGET: usize = 700;
/// Maximum time for a page to settle.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum time to read the page after that. A script that does not end would block it forever.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of dialogs, tabs and downloads that are reported.
const MAX_EVENTS: usize = 5;

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ActionOutcome {
    /// Current URL of the page.
    pub url: String,
    /// The page's title, if it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Lines that were added (+), removed (-) or changed (~), with refs, or that nothing changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<String>,
    /// Short snapshot of the page, if it is another one than before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// What else happened: dialogs and how they were answered, new tabs, downloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// True if something is omitted; the text names it after the sign for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// State before an action.
pub struct PageBaseline {
    tab: String,
    tabs: Vec<String>,
    downloads: Vec<String>,
    dialogs: u64,
    /// How often the page has requested files.
    file_requests: u64,
}

/// Text for an action without effect.
pub const NO_CHANGE: &str = "Nothing on the page changed.";

impl ActiveSession {
    /// Records the state before an action. Reads the page only if the caller has not seen it yet.
    pub async fn baseline(&mut self) -> Result<PageBaseline, ToolError> {
        let document = format!("{}/{}", self.page.id(), self.page.document());
        if self.shown_page().is_none_or(|seen| *seen.document != *document) {
            let page_state = self.page_state().await?;
            self.record_shown(&page_state);
        }
        let tabs = self.session.tabs().await?.into_iter().map(|tab| tab.id).collect();
        let dialogs = self.page.dialogs(0).last().map_or(0, |dialog| dialog.serial);
        let downloads = self.session.downloads().into_iter().map(|download| download.id).collect();
        let asked = self.page.file_chooser().map_or(0, |(asked, _)| asked);
        Ok(PageBaseline { tab: self.page.id().to_owned(), tabs, downloads, dialogs, file_requests: asked })
    }

    /// Waits for the page to settle and returns what changed.
    pub async fn outcome(&mut self, before: &PageBaseline) -> Result<ActionOutcome, ToolError> {
        let settled = self.page.settle(SETTLE_TIMEOUT).await;
        let mut events = self.dialog_events(before);
        events.extend(self.follow_tabs(before).await?);
        events.extend(self.download_events(before));
        if self.page.id() == before.tab {
            if !settled?.quiet {
                events.push("The page is still busy; use browser_wait to wait for it.".to_owned());
            }
        } else {
            self.page.settle(SETTLE_TIMEOUT).await?;
        }
        let page_state = match tokio::time::timeout(READ_TIMEOUT, self.fresh_page_state()).await {
            Ok(Err(error)) if error.kind == Kind::Timeout => return self.unresponsive(events).await,
            Err(_) => return self.unresponsive(events).await,
            Ok(look) => look?,
        };
        events.extend(self.file_request_event(before, &page_state));
        events.extend(page_state.note.clone());
        let mut outcome = self.describe_changes(&page_state);
        if outcome.changes.is_none() && outcome.page.is_none() && outcome.title.is_none() && events.is_empty()
        {
            outcome.changes = Some(NO_CHANGE.to_owned());
        }
        Ok(ActionOutcome { events, ..outcome })
    }

    /// The action was performed, but the page does not respond.
    async fn unresponsive(&self, mut events: Vec<String>) -> Result<ActionOutcome, ToolError> {
        let tabs = self.session.tabs().await?;
        let url = tabs.iter().find(|tab| tab.id == self.page.id()).map(|tab| sanitize::single_line(&tab.url));
        events.push(
            "The page does not respond, so it is unknown what changed. Wait with browser_wait, or open it again with browser_navigate."
                .to_owned(),
        );
        Ok(ActionOutcome { url: url.unwrap_or_default(), events, ..ActionOutcome::default() })
    }

    /// A page that opens a file chooser gets no files; the field takes them.
    fn file_request_event(&mut self, before: &PageBaseline, page_state: &PageState) -> Option<String> {
        let (asked, field) = self.page.file_chooser().filter(|_| self.page.id() == before.tab)?;
        if asked <= before.file_requests {
            return None;
        }
        let item = PageItem { node: Some(field), role: FILE_FIELD_ROLE.to_owned(), ..PageItem::default() };
        let name = self.state.refs.get_or_assign(&page_state.document, &item)?;
        Some(format!("The page requests files: upload them with browser_upload and ref={name}."))
    }

    /// Difference to the page that the caller has seen in this tab.
    pub fn describe_changes(&mut self, page_state: &PageState) -> ActionOutcome {
        let seen = self.shown_page().cloned();
        let same = seen.as_ref().filter(|seen| seen.document == page_state.document);
        let diff = same.map(|seen| {
            changes(
                &seen.flat,
                &page_state.tree,
                &mut self.state.refs,
                &page_state.document,
                CHANGES_TOKEN_BUDGET,
            )
        });
        let mut after = ActionOutcome { url: page_state.url.clone(), ..ActionOutcome::default() };
        if seen.as_ref().is_none_or(|seen| seen.title != page_state.title) {
            after.title = Some(page_state.title.clone());
        }
        match diff {
            Some(changed) if !changed.is_other_page => {
                after.changes = Some(changed.text).filter(|text| !text.is_empty());
                after.truncated = changed.truncated;
            }
            _ => {
                let options = RenderOptions { budget: Some(PAGE_TOKEN_BUDGET), part: None, from: 0 };
                let page = render(&page_state.tree, options, &mut self.state.refs, &page_state.document);
                after.page = Some(page.text);
                after.truncated = page.truncated;
            }
        }
        self.record_shown(page_state);
        after
    }

    fn dialog_events(&self, before: &PageBaseline) -> Vec<String> {
        if self.page.id() != before.tab {
            return Vec::new();
        }
        let dialogs = self.page.dialogs(before.dialogs);
        let lines = dialogs.iter().take(MAX_EVENTS).map(|dialog| {
            let how = if dialog.accepted { "accepted" } else { "dismissed" };
            format!(
                "{} {:?} was {how}.",
                dialog.kind,
                sanitize::truncate(&sanitize::single_line(&dialog.message), 200)
            )
        });
        lines.collect()
    }

    /// Follows a tab that has become active.
    async fn follow_tabs(&mut self, before: &PageBaseline) -> Result<Vec<String>, ToolError> {
        let tabs = self.session.tabs().await?;
        let new = tabs.iter().enumerate().filter(|(_, tab)| !before.tabs.contains(&tab.id)).take(MAX_EVENTS);
        let lines = new
            .map(|(index, tab)| {
                let url = sanitize::truncate(&sanitize::single_line(&tab.url), 200);
                let which = if tab.active { "is now active" } else { "was opened" };
                format!("Tab {index} ({url}) {which}.")
            })
            .collect();
        let ids: Vec<String> = tabs.into_iter().map(|tab| tab.id).collect();
        self.retain_tabs(&ids);
        self.page = self.session.page().await?;
        Ok(lines)
    }

    fn download_events(&self, before: &PageBaseline) -> Vec<String> {
        let downloads = self.session.downloads();
        let new =
            downloads.iter().filter(|download| !before.downloads.contains(&download.id)).take(MAX_EVENTS);
        new.map(|download| {
            let name = sanitize::truncate(&sanitize::single_line(&download.name), 100);
            format!(
                "Download {} ({name:?}, {} bytes): save it with browser_downloads.",
                download.id, download.bytes
            )
        })
        .collect()
    }
}
