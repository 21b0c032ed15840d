//! Rendering of pages in a browser, for tools outside the browser toolbox. Optional: needs an enabled browser.

use crate::{Capabilities, Grant};
use octo_model::{Caller, ToolError};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// A page after its scripts have run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedPage {
    /// The final URL.
    pub url: Url,
    /// HTTP status of the main document, if loaded over HTTP.
    pub status: Option<u16>,
    pub html: String,
    /// False if the page was still loading at the timeout.
    pub complete: bool,
}

/// Renders pages; implemented by the browser toolbox.
pub trait PageRenderer: Send + Sync {
    fn render<'a>(
        &'a self,
        caller: &'a Caller,
        url: &'a Url,
        within: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<RenderedPage, ToolError>> + Send + 'a>>;
}

/// Renders pages in the browser, if there is one.
#[derive(Clone, Default)]
pub struct Render(Option<Arc<dyn PageRenderer>>);

impl Render {
    pub fn new(renders: Arc<dyn PageRenderer>) -> Self {
        Self(Some(renders))
    }

    /// Returns `None` if no browser is enabled.
    pub async fn render(
        &self,
        caller: &Caller,
        url: &Url,
        within: Duration,
    ) -> Option<Result<RenderedPage, ToolError>> {
        match &self.0 {
            Some(renders) => Some(renders.render(caller, url, within).await),
            None => None,
        }
    }
}

/// Always granted: without a browser it renders nothing.
impl Grant for Render {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        Ok(doors.open().unwrap_or_default())
    }
}
