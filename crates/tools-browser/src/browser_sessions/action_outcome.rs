//! What an action has led to: not the page again, but what changed and the refs to go on with.

use crate::browser_sessions::{ActiveSession, PageState};
use crate::sanitize;
use crate::snapshot::{FILE_FIELD_ROLE, PageItem, RenderOptions, changes, render};
use octo_toolkit::{Kind, ToolError};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// Tokens for what has changed.
const CHANGES_TOKEN_BUDGET: usize = 400;
/// Tokens for a page that was not there before.
const PAGE_TOKEN_BUDGET: usize = 700;
/// How long a page may take to come to rest.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a look at the page may take after that. A script that does not end makes it wait in vain.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Dialogs, tabs and downloads that are told of.
const MAX_EVENTS: usize = 5;

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ActionOutcome {
    /// Address of the page now.
    pub url: String,
    /// The page's title, when it is news.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Lines that came (+), went (-) or changed (~), with refs, or that nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<String>,
    /// The page in short, when it is another one than before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// What else happened: dialogs and how they were answered, new tabs, downloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// True when something is left out; the text says what, after the sign for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// What was there before an action.
pub struct PageBaseline {
    tab: String,
    tabs: Vec<String>,
    downloads: Vec<String>,
    dialogs: u64,
    /// How often it has asked for files.
    file_requests: u64,
}

/// Said of an action without effect.
pub const NO_CHANGE: &str = "Nothing on the page changed.";

impl ActiveSession {
    /// Takes stock before an action. The page is looked at only when the caller has not seen it yet.
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

    /// Waits for the page to come to rest and says what is different.
    pub async fn outcome(&mut self, before: &PageBaseline) -> Result<ActionOutcome, ToolError> {
        let settled = self.page.settle(SETTLE_TIMEOUT).await;
        let mut events = self.dialog_events(before);
        events.extend(self.follow_tabs(before).await?);
        events.extend(self.download_events(before));
        if self.page.id() == before.tab {
            if !settled?.quiet {
                events.push("The page is still busy; browser_wait waits for what is to come.".to_owned());
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

    /// The action took place, but nothing can be said of the page.
    async fn unresponsive(&self, mut events: Vec<String>) -> Result<ActionOutcome, ToolError> {
        let tabs = self.session.tabs().await?;
        let url = tabs.iter().find(|tab| tab.id == self.page.id()).map(|tab| sanitize::single_line(&tab.url));
        events.push(
            "The page does not react, so what changed is not known. Wait with browser_wait, or open it again with browser_navigate."
                .to_owned(),
        );
        Ok(ActionOutcome { url: url.unwrap_or_default(), events, ..ActionOutcome::default() })
    }

    /// A page that opens a dialog for files gets none; the field takes them.
    fn file_request_event(&mut self, before: &PageBaseline, page_state: &PageState) -> Option<String> {
        let (asked, field) = self.page.file_chooser().filter(|_| self.page.id() == before.tab)?;
        if asked <= before.file_requests {
            return None;
        }
        let item = PageItem { node: Some(field), role: FILE_FIELD_ROLE.to_owned(), ..PageItem::default() };
        let name = self.state.refs.get_or_assign(&page_state.document, &item)?;
        Some(format!("The page asks for files: give them with browser_upload and ref={name}."))
    }

    /// The difference to what the caller knows of this tab.
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

    /// Follows a tab that has become active meanwhile.
    async fn follow_tabs(&mut self, before: &PageBaseline) -> Result<Vec<String>, ToolError> {
        let tabs = self.session.tabs().await?;
        let new = tabs.iter().enumerate().filter(|(_, tab)| !before.tabs.contains(&tab.id)).take(MAX_EVENTS);
        let lines = new
            .map(|(index, tab)| {
                let url = sanitize::truncate(&sanitize::single_line(&tab.url), 200);
                let which = if tab.active { "is the active one now" } else { "was opened" };
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
                "Download {} ({name:?}, {} bytes): browser_downloads saves it.",
                download.id, download.bytes
            )
        })
        .collect()
    }
}
