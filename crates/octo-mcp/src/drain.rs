//! Draining: clients that can move to another hub are asked to leave.

use crate::mcp::Mcp;
use octo_model::JsonObject;
use tokio::sync::watch;

/// Notification that asks the other end of a stdio connection to finish its requests and to leave.
pub const DRAIN_NOTIFICATION: &str = "notifications/octoprox/drain";

/// The request to leave, which arrives once per connection.
pub struct DrainRequest(watch::Receiver<Option<JsonObject>>);

impl DrainRequest {
    /// Waits for the params of the notification, for ever if there is none.
    pub async fn next(&mut self) -> JsonObject {
        loop {
            if self.0.changed().await.is_err() {
                return std::future::pending().await;
            }
            if let Some(params) = self.0.borrow_and_update().clone() {
                return params;
            }
        }
    }
}

impl Mcp {
    /// Asks all stdio connections to leave, also those made later. No call becomes a task from now on.
    pub fn drain(&self, params: JsonObject) {
        self.draining.send_replace(Some(params));
    }

    /// Whether there is no task and no call that waits for an answer in a later request, so that nothing but open
    /// connections depends on this hub.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.suspended.is_empty()
    }

    /// Whether all calls that became tasks have ended.
    pub fn has_no_running_task(&self) -> bool {
        self.tasks.all_ended()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.borrow().is_some()
    }

    pub(crate) fn drain_request(&self) -> DrainRequest {
        let mut request = self.draining.subscribe();
        request.mark_changed();
        DrainRequest(request)
    }
}
