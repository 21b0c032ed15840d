//! Pages as the browser shows them, for tools that are no browser: each in a context of its own, gone afterwards.

use crate::engine::{Engine, WaitUntil};
use crate::{Settings, browser};
use octo_toolkit::{BoxFuture, Caller, Chromium, PageRenderer, RenderedPage, ToolError, Toolbox};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use url::Url;

/// Letters of a page that are taken.
const LONGEST: usize = 8 << 20;
/// Left of the time for taking the page out.
const TAKING: Duration = Duration::from_millis(700);

/// The one browser that the toolbox and the renderer share.
#[derive(Clone, Default)]
pub struct Shared(Engine);

impl Shared {
    /// The tools of the domain `browser`, with this browser.
    pub fn toolbox(&self, settings: Settings) -> Toolbox {
        crate::tools(browser::Browser::new(self.0.clone(), settings))
    }

    pub fn renderer(&self, chromium: Chromium) -> impl PageRenderer + use<> {
        Renderer { engine: self.0.clone(), chromium, serial: AtomicU64::new(0) }
    }
}

struct Renderer {
    engine: Engine,
    chromium: Chromium,
    /// Renderings of one caller do not meet.
    serial: AtomicU64,
}

impl PageRenderer for Renderer {
    fn render<'a>(
        &'a self,
        caller: &'a Caller,
        url: &'a Url,
        within: Duration,
    ) -> BoxFuture<'a, Result<RenderedPage, ToolError>> {
        Box::pin(async move {
            let until = Instant::now() + within;
            // No cookies of the caller's own sessions go along, and none stay. Tools cannot name it: it has a dot.
            let name = format!("read.{}", self.serial.fetch_add(1, Ordering::Relaxed));
            let _gone = Gone { engine: &self.engine, caller, name: &name };
            let shown = self.show(caller, &name, url, until);
            match tokio::time::timeout_at(until.into(), shown).await {
                Ok(shown) => shown,
                Err(_) => Err(ToolError::new(octo_toolkit::Kind::Timeout, "The browser took too long.")
                    .hint("Try again with more time.")),
            }
        })
    }
}

impl Renderer {
    async fn show(
        &self,
        caller: &Caller,
        name: &str,
        url: &Url,
        until: Instant,
    ) -> Result<RenderedPage, ToolError> {
        let session = self.engine.session(&self.chromium, caller, name).await?;
        let page = session.page().await?;
        let left = until.saturating_duration_since(Instant::now()).saturating_sub(TAKING);
        let went = page.navigate(url.as_str(), WaitUntil::NetworkIdle, left).await?;
        let html = page.html(LONGEST).await?;
        let url = Url::parse(&went.url).map_err(ToolError::internal)?;
        Ok(RenderedPage { url, status: went.status, html, complete: went.complete })
    }
}

/// Closes the context at the end, also when nobody waits for the page any more.
struct Gone<'a> {
    engine: &'a Engine,
    caller: &'a Caller,
    name: &'a str,
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        let (engine, caller, name) = (self.engine.clone(), self.caller.clone(), self.name.to_owned());
        tokio::spawn(async move { engine.close(&caller, &name).await });
    }
}
