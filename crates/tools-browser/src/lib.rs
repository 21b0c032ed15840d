//! The browser toolbox: a real Chromium over its DevTools protocol, whose every request obeys the `Net` grant.

mod action_outcome;
mod back;
mod browser_defaults;
mod browser_sessions;
mod click;
mod close;
mod console;
mod downloads;
mod drag;
mod element_target;
mod engine;
mod execute_js;
mod fill_form;
mod find;
mod forward;
mod get_content;
mod hover;
mod navigate;
mod network;
mod page_content;
mod page_renderer;
mod press_key;
mod sanitize;
mod screenshot;
mod scroll;
mod select_option;
mod snapshot;
mod tabs;
mod take_snapshot;
mod type_text;
mod upload;
mod wait;

#[cfg(test)]
mod tests;

use octo_toolkit::Toolbox;
pub use page_renderer::SharedBrowser;

/// What the operator allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Whether `browser_execute_js` runs scripts.
    pub allow_javascript: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { allow_javascript: true }
    }
}

/// The tools of the domain `browser`.
pub fn toolbox(settings: Settings) -> Toolbox {
    tools(browser_sessions::BrowserSessions::new(engine::Engine::new(), settings))
}

fn tools(browser: browser_sessions::BrowserSessions) -> Toolbox {
    Toolbox::new("browser", "Drives a real browser: pages, forms, tabs, pictures, downloads.")
        .with(navigate::Navigate(browser.clone()))
        .with(take_snapshot::TakeSnapshot(browser.clone()))
        .with(find::Find(browser.clone()))
        .with(click::Click(browser.clone()))
        .with(type_text::TypeText(browser.clone()))
        .with(fill_form::FillForm(browser.clone()))
        .with(select_option::SelectOption(browser.clone()))
        .with(hover::Hover(browser.clone()))
        .with(drag::Drag(browser.clone()))
        .with(press_key::PressKey(browser.clone()))
        .with(scroll::Scroll(browser.clone()))
        .with(back::Back(browser.clone()))
        .with(forward::Forward(browser.clone()))
        .with(wait::Wait(browser.clone()))
        .with(tabs::Tabs(browser.clone()))
        .with(get_content::GetContent(browser.clone()))
        .with(screenshot::Screenshot(browser.clone()))
        .with(execute_js::ExecuteJs(browser.clone()))
        .with(console::Console(browser.clone()))
        .with(network::Network(browser.clone()))
        .with(upload::Upload(browser.clone()))
        .with(downloads::Downloads(browser.clone()))
        .with(close::Close(browser))
}
