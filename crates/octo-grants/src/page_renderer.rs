//! Pages as a browser shows them, for tools that are no browser. Where no browser is enabled, nobody renders.

use crate::{Capabilities, Grant};
use octo_model::{Caller, ToolError};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// A page after its scripts have run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedPage {
    /// Where it was in the end.
    pub url: Url,
    /// Of the main document, when it came over HTTP.
    pub status: Option<u16>,
    pub html: String,
    /// False when it was still loading at the end of its time.
    pub complete: bool,
}

/// What renders pages: the browser's toolbox.
pub trait PageRenderer: Send + Sync {
    fn render<'a>(
        &'a self,
        caller: &'a Caller,
        url: &'a Url,
        within: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<RenderedPage, ToolError>> + Send + 'a>>;
}

/// Hands pages to the browser, if there is one.
#[derive(Clone, Default)]
pub struct Render(Option<Arc<dyn PageRenderer>>);

impl Render {
    pub fn new(renders: Arc<dyn PageRenderer>) -> Self {
        Self(Some(renders))
    }

    /// None where no browser is enabled.
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

/// Nothing to be refused: without a browser it renders nothing.
impl Grant for Render {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        Ok(doors.open().unwrap_or_default())
    }
}
