//! Browser toolbox: Chromium over the DevTools protocol. All its requests are checked by the `Net` grant.

mod browser_defaults;
mod browser_sessions;
mod engine;
mod page_renderer;
mod sanitize;
mod snapshot;
mod tools;

#[cfg(test)]
mod tests;

use octo_toolkit::Toolbox;
pub use page_renderer::SharedBrowser;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Browser toolbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BrowserSettings {
    /// Allow `browser_execute_js` to run scripts in pages.
    pub allow_javascript: bool,
}

impl Default for BrowserSettings {
    fn default() -> Self {
        Self { allow_javascript: true }
    }
}

/// Toolbox `browser`.
pub fn toolbox(settings: BrowserSettings) -> Toolbox {
    tools(browser_sessions::BrowserSessions::new(engine::Engine::new(), settings))
}

fn tools(browser: browser_sessions::BrowserSessions) -> Toolbox {
    Toolbox::new("browser", "Drives a real browser: pages, forms, tabs, screenshots, downloads.")
        .bound_to_machine()
        .with(tools::navigate::Navigate(browser.clone()))
        .with(tools::take_snapshot::TakeSnapshot(browser.clone()))
        .with(tools::find::Find(browser.clone()))
        .with(tools::click::Click(browser.clone()))
        .with(tools::type_text::TypeText(browser.clone()))
        .with(tools::fill_form::FillForm(browser.clone()))
        .with(tools::select_option::SelectOption(browser.clone()))
        .with(tools::hover::Hover(browser.clone()))
        .with(tools::drag::Drag(browser.clone()))
        .with(tools::press_key::PressKey(browser.clone()))
        .with(tools::scroll::Scroll(browser.clone()))
        .with(tools::back::Back(browser.clone()))
        .with(tools::forward::Forward(browser.clone()))
        .with(tools::wait::Wait(browser.clone()))
        .with(tools::tabs::Tabs(browser.clone()))
        .with(tools::get_content::GetContent(browser.clone()))
        .with(tools::screenshot::Screenshot(browser.clone()))
        .with(tools::execute_js::ExecuteJs(browser.clone()))
        .with(tools::console::Console(browser.clone()))
        .with(tools::network::Network(browser.clone()))
        .with(tools::upload::Upload(browser.clone()))
        .with(tools::downloads::Downloads(browser.clone()))
        .with(tools::close::Close(browser))
}
