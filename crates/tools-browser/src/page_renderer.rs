//! Page renderer for other toolboxes: renders each page in a browser context of its own, which is closed afterwards.

use crate::engine::{Engine, WaitUntil};
use crate::{BrowserSettings, browser_sessions};
use octo_toolkit::{BoxFuture, Caller, Chromium, PageRenderer, RenderedPage, ToolError, Toolbox};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use url::Url;

/// Maximum characters of a page.
const MAX_HTML_CHARS: usize = 8 << 20;
/// Time reserved for reading the page.
const HTML_READ_RESERVE: Duration = Duration::from_millis(700);

/// The browser that the toolbox and the renderer share.
#[derive(Clone, Default)]
pub struct SharedBrowser(Engine);

impl SharedBrowser {
    /// Toolbox `browser` with this browser.
    pub fn toolbox(&self, settings: BrowserSettings) -> Toolbox {
        crate::tools(browser_sessions::BrowserSessions::new(self.0.clone(), settings))
    }

    pub fn renderer(&self, chromium: Chromium) -> impl PageRenderer + use<> {
        BrowserPageRenderer { engine: self.0.clone(), chromium, serial: AtomicU64::new(0) }
    }
}

struct BrowserPageRenderer {
    engine: Engine,
    chromium: Chromium,
    /// Distinguishes renderings of one caller.
    serial: AtomicU64,
}

impl PageRenderer for BrowserPageRenderer {
    fn render<'a>(
        &'a self,
        caller: &'a Caller,
        url: &'a Url,
        within: Duration,
    ) -> BoxFuture<'a, Result<RenderedPage, ToolError>> {
        Box::pin(async move {
            let until = Instant::now() + within;
            // Separate from the cookies of the caller's own sessions. Tools cannot name this session: it has a dot.
            let name = format!("read.{}", self.serial.fetch_add(1, Ordering::Relaxed));
            let _close_on_drop = CloseOnDrop { engine: &self.engine, caller, name: &name };
            let shown = self.render_html(caller, &name, url, until);
            match tokio::time::timeout_at(until.into(), shown).await {
                Ok(shown) => shown,
                Err(_) => Err(ToolError::new(octo_toolkit::Kind::Timeout, "The browser timed out.")
                    .hint("Try again with more time.")),
            }
        })
    }
}

impl BrowserPageRenderer {
    async fn render_html(
        &self,
        caller: &Caller,
        name: &str,
        url: &Url,
        until: Instant,
    ) -> Result<RenderedPage, ToolError> {
        let session = self.engine.session(&self.chromium, caller, name).await?;
        let page = session.page().await?;
        let left = until.saturating_duration_since(Instant::now()).saturating_sub(HTML_READ_RESERVE);
        let navigation = page.navigate(url.as_str(), WaitUntil::NetworkIdle, left).await?;
        let html = page.html(MAX_HTML_CHARS).await?;
        let url = Url::parse(&navigation.url).map_err(ToolError::internal)?;
        Ok(RenderedPage { url, status: navigation.status, html, complete: navigation.complete })
    }
}

/// Closes the context at the end, even if the call was cancelled.
struct CloseOnDrop<'a> {
    engine: &'a Engine,
    caller: &'a Caller,
    name: &'a str,
}

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        let (engine, caller, name) = (self.engine.clone(), self.caller.clone(), self.name.to_owned());
        tokio::spawn(async move { engine.close(&caller, &name).await });
    }
}
