//! What an action has led to: not the page again, but what changed and the refs to go on with.

use crate::browser::{Look, Open};
use crate::clean;
use crate::snapshot::{Ask, FILE_FIELD, Item, changes, render};
use octo_toolkit::{Kind, ToolError};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// Tokens for what has changed.
const CHANGES: usize = 400;
/// Tokens for a page that was not there before.
const PAGE: usize = 700;
/// How long a page may take to come to rest.
const REST: Duration = Duration::from_secs(3);
/// How long a look at the page may take after that. A script that does not end makes it wait in vain.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// Dialogs, tabs and downloads that are told of.
const FEW: usize = 5;

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct After {
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
pub struct Before {
    tab: String,
    tabs: Vec<String>,
    downloads: Vec<String>,
    dialogs: u64,
    /// How often it has asked for files.
    asked: u64,
}

/// Said of an action without effect.
pub const NOTHING: &str = "Nothing on the page changed.";

impl Open {
    /// Takes stock before an action. The page is looked at only when the caller has not seen it yet.
    pub async fn before(&mut self) -> Result<Before, ToolError> {
        let document = format!("{}/{}", self.page.id(), self.page.document());
        if self.seen().is_none_or(|seen| *seen.document != *document) {
            let look = self.look().await?;
            self.remember(&look);
        }
        let tabs = self.session.tabs().await?.into_iter().map(|tab| tab.id).collect();
        let dialogs = self.page.dialogs(0).last().map_or(0, |dialog| dialog.serial);
        let downloads = self.session.downloads().into_iter().map(|download| download.id).collect();
        let asked = self.page.chooser().map_or(0, |(asked, _)| asked);
        Ok(Before { tab: self.page.id().to_owned(), tabs, downloads, dialogs, asked })
    }

    /// Waits for the page to come to rest and says what is different.
    pub async fn after(&mut self, before: &Before) -> Result<After, ToolError> {
        let settled = self.page.settle(REST).await;
        let mut events = self.dialogs(before);
        events.extend(self.tabs(before).await?);
        events.extend(self.downloads(before));
        if self.page.id() == before.tab {
            if !settled?.quiet {
                events.push("The page is still busy; browser_wait waits for what is to come.".to_owned());
            }
        } else {
            self.page.settle(REST).await?;
        }
        let look = match tokio::time::timeout(LOOK_TIMEOUT, self.look_anew()).await {
            Ok(Err(error)) if error.kind == Kind::Timeout => return self.unresponsive(events).await,
            Err(_) => return self.unresponsive(events).await,
            Ok(look) => look?,
        };
        events.extend(self.asks_for_files(before, &look));
        events.extend(look.note.clone());
        let mut told = self.tell(&look);
        if told.changes.is_none() && told.page.is_none() && told.title.is_none() && events.is_empty() {
            told.changes = Some(NOTHING.to_owned());
        }
        Ok(After { events, ..told })
    }

    /// The action took place, but nothing can be said of the page.
    async fn unresponsive(&self, mut events: Vec<String>) -> Result<After, ToolError> {
        let tabs = self.session.tabs().await?;
        let url = tabs.iter().find(|tab| tab.id == self.page.id()).map(|tab| clean::line(&tab.url));
        events.push(
            "The page does not react, so what changed is not known. Wait with browser_wait, or open it again with browser_navigate."
                .to_owned(),
        );
        Ok(After { url: url.unwrap_or_default(), events, ..After::default() })
    }

    /// A page that opens a dialog for files gets none; the field takes them.
    fn asks_for_files(&mut self, before: &Before, look: &Look) -> Option<String> {
        let (asked, field) = self.page.chooser().filter(|_| self.page.id() == before.tab)?;
        if asked <= before.asked {
            return None;
        }
        let item = Item { node: Some(field), role: FILE_FIELD.to_owned(), ..Item::default() };
        let name = self.memory.refs.of(&look.document, &item)?;
        Some(format!("The page asks for files: give them with browser_upload and ref={name}."))
    }

    /// The difference to what the caller knows of this tab.
    pub fn tell(&mut self, look: &Look) -> After {
        let seen = self.seen().cloned();
        let same = seen.as_ref().filter(|seen| seen.document == look.document);
        let changed =
            same.map(|seen| changes(&seen.flat, &look.tree, &mut self.memory.refs, &look.document, CHANGES));
        let mut after = After { url: look.url.clone(), ..After::default() };
        if seen.as_ref().is_none_or(|seen| seen.title != look.title) {
            after.title = Some(look.title.clone());
        }
        match changed {
            Some(changed) if !changed.other_page => {
                after.changes = Some(changed.text).filter(|text| !text.is_empty());
                after.truncated = changed.truncated;
            }
            _ => {
                let ask = Ask { budget: Some(PAGE), part: None, from: 0 };
                let page = render(&look.tree, ask, &mut self.memory.refs, &look.document);
                after.page = Some(page.text);
                after.truncated = page.truncated;
            }
        }
        self.remember(look);
        after
    }

    fn dialogs(&self, before: &Before) -> Vec<String> {
        if self.page.id() != before.tab {
            return Vec::new();
        }
        let dialogs = self.page.dialogs(before.dialogs);
        let said = dialogs.iter().take(FEW).map(|dialog| {
            let how = if dialog.accepted { "accepted" } else { "dismissed" };
            format!("{} {:?} was {how}.", dialog.kind, clean::cut(&clean::line(&dialog.message), 200))
        });
        said.collect()
    }

    /// Follows a tab that has become active meanwhile.
    async fn tabs(&mut self, before: &Before) -> Result<Vec<String>, ToolError> {
        let tabs = self.session.tabs().await?;
        let new = tabs.iter().enumerate().filter(|(_, tab)| !before.tabs.contains(&tab.id)).take(FEW);
        let said = new
            .map(|(index, tab)| {
                let url = clean::cut(&clean::line(&tab.url), 200);
                let which = if tab.active { "is the active one now" } else { "was opened" };
                format!("Tab {index} ({url}) {which}.")
            })
            .collect();
        let ids: Vec<String> = tabs.into_iter().map(|tab| tab.id).collect();
        self.forget_others(&ids);
        self.page = self.session.page().await?;
        Ok(said)
    }

    fn downloads(&self, before: &Before) -> Vec<String> {
        let downloads = self.session.downloads();
        let new = downloads.iter().filter(|download| !before.downloads.contains(&download.id)).take(FEW);
        new.map(|download| {
            let name = clean::cut(&clean::line(&download.name), 100);
            format!(
                "Download {} ({name:?}, {} bytes): browser_downloads saves it.",
                download.id, download.bytes
            )
        })
        .collect()
    }
}
