//! `browser_tabs`.

use crate::browser_sessions::BrowserSessions;
use crate::engine::WaitUntil;
use crate::{browser_defaults, sanitize};
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists the tabs, opens, selects or closes one, and returns the tabs afterwards, with a short snapshot after new and
/// select; fails if the tab is not found. Prefer browser_close to end the session.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// What to do.
    #[serde(default = "default_action")]
    action: Action,
    /// Index of the tab in the list, from 0; for select and close.
    #[serde(default)]
    index: Option<u64>,
    /// URL for a new tab.
    #[serde(default)]
    url: Option<String>,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    List,
    New,
    Select,
    Close,
}

fn default_action() -> Action {
    Action::List
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The tabs, in the order of opening.
    tabs: Vec<TabEntry>,
    /// Short snapshot of the active page, with refs; after new and select.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    page: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct TabEntry {
    /// Index of the tab.
    index: usize,
    /// URL of the tab.
    url: String,
    /// Title of the tab.
    title: String,
    /// Whether the other tools act on it.
    active: bool,
}

pub struct Tabs(pub BrowserSessions);

impl Tool for Tabs {
    const NAME: &'static str = "browser_tabs";
    const TITLE: &'static str = "List, open, select or close tabs";
    const KEYWORDS: &'static str = "window switch open close new list";
    const REQUESTS: &'static [&'static str] = &[
        "which pages do i have open side by side",
        "open another page without leaving this one",
        "switch over to the window with the invoice",
        "close the second tab but keep the rest",
        "a popup opened a new window, go to it",
        "get the list of open windows with their titles",
    ];
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("List the tabs", json!({})),
            Example::new("Select the first", json!({"action": "select", "index": 0})),
        ]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<Output, ToolError> {
        let mut active = self.0.open_ignoring_crash(&chromium, input.session.as_deref(), cx).await?;
        let mut show_page = false;
        match input.action {
            Action::List => {}
            Action::New => {
                active.page = active.session.open_tab().await?;
                if let Some(url) = &input.url {
                    let timeout = browser_defaults::clamp_timeout(
                        browser_defaults::default_navigation_timeout_ms(),
                        cx,
                    );
                    active.page.navigate(url, WaitUntil::NetworkIdle, timeout).await?;
                    show_page = true;
                }
            }
            Action::Select => {
                active.page = active.session.select_tab(tab_index(&input)?).await?;
                show_page = true;
            }
            Action::Close => {
                active.session.close_tab(tab_index(&input)?).await?;
            }
        }
        let page = match show_page {
            true => {
                let page_state = active.page_state().await?;
                let outcome = active.describe_changes(&page_state);
                outcome.page.or(outcome.changes)
            }
            false => None,
        };
        let tabs = active.session.tabs().await?;
        let ids: Vec<String> = tabs.iter().map(|tab| tab.id.clone()).collect();
        active.retain_tabs(&ids);
        let tabs = tabs.into_iter().enumerate().map(|(index, tab)| TabEntry {
            index,
            url: sanitize::truncate(&sanitize::single_line(&tab.url), 300),
            title: sanitize::truncate(&sanitize::single_line(&tab.title), 100),
            active: tab.active,
        });
        Ok(Output { tabs: tabs.collect(), page })
    }
}

fn tab_index(input: &Input) -> Result<usize, ToolError> {
    let index = input.index.and_then(|index| usize::try_from(index).ok());
    index.ok_or_else(|| {
        ToolError::invalid("No tab given: index is missing.").hint("Use its index from action \"list\".")
    })
}
