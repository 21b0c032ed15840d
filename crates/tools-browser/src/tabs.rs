//! `browser_tabs`.

use crate::browser::Browser;
use crate::engine::WaitUntil;
use crate::{clean, given};
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists the tabs, opens one, selects one or closes one, and gives the tabs as they are then, with the page in short after
/// new and select; fails when there is no such tab. Prefer browser_close to end the session.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// What to do.
    #[serde(default = "list")]
    action: Action,
    /// Place of the tab in the list, from 0; for select and close.
    #[serde(default)]
    index: Option<u64>,
    /// Address for a new tab.
    #[serde(default)]
    url: Option<String>,
    /// The session, when it has a name.
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

fn list() -> Action {
    Action::List
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The tabs, in the order in which they were opened.
    tabs: Vec<Tab>,
    /// The active page in short, with refs; after new and select.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    page: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Tab {
    /// Its place.
    index: usize,
    /// Its address.
    url: String,
    /// Its title.
    title: String,
    /// Whether the other tools act on it.
    active: bool,
}

pub struct Tabs(pub Browser);

impl Tool for Tabs {
    const NAME: &'static str = "browser_tabs";
    const TITLE: &'static str = "List, open, select or close tabs";
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Which tabs are there", json!({})),
            Example::new("Go to the first", json!({"action": "select", "index": 0})),
        ]
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<Output, ToolError> {
        let mut open = self.0.open_anew(&chromium, input.session.as_deref(), cx).await?;
        let mut looks = false;
        match input.action {
            Action::List => {}
            Action::New => {
                open.page = open.session.open_tab().await?;
                if let Some(url) = &input.url {
                    let patience = given::within(given::half_a_minute(), cx);
                    open.page.navigate(url, WaitUntil::NetworkIdle, patience).await?;
                    looks = true;
                }
            }
            Action::Select => {
                open.page = open.session.select_tab(place(&input)?).await?;
                looks = true;
            }
            Action::Close => {
                open.session.close_tab(place(&input)?).await?;
            }
        }
        let page = match looks {
            true => {
                let look = open.look().await?;
                let told = open.tell(&look);
                told.page.or(told.changes)
            }
            false => None,
        };
        let tabs = open.session.tabs().await?;
        let ids: Vec<String> = tabs.iter().map(|tab| tab.id.clone()).collect();
        open.forget_others(&ids);
        let tabs = tabs.into_iter().enumerate().map(|(index, tab)| Tab {
            index,
            url: clean::cut(&clean::line(&tab.url), 300),
            title: clean::cut(&clean::line(&tab.title), 100),
            active: tab.active,
        });
        Ok(Output { tabs: tabs.collect(), page })
    }
}

fn place(input: &Input) -> Result<usize, ToolError> {
    let index = input.index.and_then(|index| usize::try_from(index).ok());
    index.ok_or_else(|| {
        ToolError::invalid("Which tab? index is missing.").hint("Give its index from action \"list\".")
    })
}
