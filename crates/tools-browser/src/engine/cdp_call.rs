//! Sends commands to a tab. A pending command fails immediately if the tab or its frame goes away; the connection takes
//! care of that.

use super::cdp_connection::{COMMAND_TIMEOUT, PendingReply};
use super::{Page, World};
use octo_toolkit::{Kind, ToolError};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

impl Page {
    /// Sends a command to a session of the tab; its reply can be awaited later.
    pub(super) async fn send_command(
        &self,
        session: &str,
        method: &str,
        params: Value,
    ) -> Result<PendingReply, ToolError> {
        self.tab.check()?;
        self.tab.cdp.send(Some(session), method, params).await
    }

    /// Sends a command to a session of the tab and waits for its reply.
    pub(super) async fn call_in<T: DeserializeOwned>(
        &self,
        session: &str,
        method: &str,
        params: Value,
    ) -> Result<T, ToolError> {
        self.send_command(session, method, params).await?.get().await
    }

    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<T, ToolError> {
        self.call_within(method, params, COMMAND_TIMEOUT).await
    }

    pub(super) async fn call_within<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
        timeout: Duration,
    ) -> Result<T, ToolError> {
        self.send_command(&self.tab.session, method, params).await?.get_with_timeout(timeout).await
    }

    /// Calls any other protocol method in the main frame's session.
    pub async fn cdp(&self, method: &str, params: Value) -> Result<Value, ToolError> {
        self.call(method, params).await
    }

    /// HTML of the main frame, up to this many characters.
    pub async fn html(&self, max_chars: usize) -> Result<String, ToolError> {
        let script = format!(
            "document.documentElement ? document.documentElement.outerHTML.slice(0, {max_chars}) : ''"
        );
        let html = self.evaluate(&script, World::Isolated, Duration::from_secs(10)).await?;
        html.as_str().map(str::to_owned).ok_or_else(|| ToolError::internal("the HTML is not a string"))
    }
}

/// Whether the browser's error message contains this text.
pub(super) fn detail_contains(error: &ToolError, part: &str) -> bool {
    error.detail.as_deref().is_some_and(|detail| detail.contains(part))
}

pub(super) fn navigated_away_error() -> ToolError {
    ToolError::new(Kind::Conflict, "The page navigated away meanwhile.")
        .hint("Take a new snapshot and continue.")
}
