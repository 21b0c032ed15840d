//! Asking a tab: the one way in which commands reach it. Whoever waits for an answer is told at once when the tab, or the
//! frame that was asked, goes away; the wire sees to that.

use super::wire::{PATIENCE, Pending};
use super::{Page, World};
use octo_toolkit::{Kind, ToolError};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

impl Page {
    /// Sends a command to a session of the tab; its answer can be awaited later.
    pub(super) async fn ask(&self, session: &str, method: &str, params: Value) -> Result<Pending, ToolError> {
        self.tab.check()?;
        self.tab.wire.send(Some(session), method, params).await
    }

    /// Sends a command to a session of the tab and waits for its answer.
    pub(super) async fn call_in<T: DeserializeOwned>(
        &self,
        session: &str,
        method: &str,
        params: Value,
    ) -> Result<T, ToolError> {
        self.ask(session, method, params).await?.get().await
    }

    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<T, ToolError> {
        self.call_within(method, params, PATIENCE).await
    }

    pub(super) async fn call_within<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
        patience: Duration,
    ) -> Result<T, ToolError> {
        self.ask(&self.tab.session, method, params).await?.get_within(patience).await
    }

    /// Any other method of the protocol, in the main frame's session.
    pub async fn cdp(&self, method: &str, params: Value) -> Result<Value, ToolError> {
        self.call(method, params).await
    }

    /// HTML of the main frame as it is now, as far as this many letters go.
    pub async fn html(&self, most: usize) -> Result<String, ToolError> {
        let script =
            format!("document.documentElement ? document.documentElement.outerHTML.slice(0, {most}) : ''");
        let html = self.evaluate(&script, World::Isolated, Duration::from_secs(10)).await?;
        html.as_str().map(str::to_owned).ok_or_else(|| ToolError::internal("HTML that is no text"))
    }
}

/// Whether the browser's own words for a failure have this in them.
pub(super) fn says(error: &ToolError, part: &str) -> bool {
    error.detail.as_deref().is_some_and(|detail| detail.contains(part))
}

pub(super) fn elsewhere() -> ToolError {
    ToolError::new(Kind::Conflict, "The page went elsewhere meanwhile.")
        .hint("Take a new snapshot and go on.")
}
