//! `subscriptions/listen`: a long response made of notifications.

use crate::client_context::ClientContext;
use crate::discover::server_info;
use crate::mcp::Mcp;
use crate::notifications::{NotificationFilter, change_notification};
use crate::rpc_errors::rpc_error;
use crate::task::Task;
use crate::task_registry::missing_tasks_capability;
use octo_hub::{Change, MAX_SUBSCRIPTIONS, Subscription};
use octo_model::{Json, JsonObject, Method, RpcError};
use octo_toolkit::NoPeer;
use octo_wire::{Id, Message, code, meta};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

/// One `subscriptions/listen` request. Dropping it ends its subscriptions.
pub struct ListenStream {
    mcp: Arc<Mcp>,
    id: Id,
    filter: NotificationFilter,
    changes: broadcast::Receiver<Change>,
    /// Held while the request lasts.
    _subscriptions: Vec<Subscription>,
    /// Tasks whose end has not been reported.
    tasks: Vec<WatchedTask>,
}

type WatchedTask = (Arc<Task>, watch::Receiver<()>);

impl Mcp {
    /// Opens a listen stream; resources that cannot be watched are left out of the acknowledgement.
    pub(crate) async fn listen(
        self: &Arc<Self>,
        client: &ClientContext,
        id: Id,
        params: &JsonObject,
    ) -> Result<ListenStream, RpcError> {
        if params.get("notifications").is_none_or(|wanted| !wanted.is_object()) {
            return Err(rpc_error(
                code::INVALID_PARAMS,
                "subscriptions/listen needs an object `notifications`.",
            ));
        }
        let wanted = params.object("notifications");
        let tasks = self.watched_tasks(client, &wanted)?;
        let mut filter = NotificationFilter::from_params(&wanted);
        if filter.uris.len() > MAX_SUBSCRIPTIONS {
            let why = format!("At most {MAX_SUBSCRIPTIONS} resources can be subscribed to at once.");
            return Err(rpc_error(code::INVALID_PARAMS, why));
        }
        let changes = self.hub.changes();
        self.hub.watch_lists(&client.profile);
        let mut subscriptions = Vec::new();
        for uri in std::mem::take(&mut filter.uris) {
            let params = JsonObject::new().with("uri", uri.as_str());
            let request = self.hub_request(
                client,
                Method::Subscribe,
                params,
                Arc::new(NoPeer),
                CancellationToken::new(),
            )?;
            if let Ok(subscription) = self.hub.subscribe(&request).await {
                subscriptions.push(subscription);
                filter.uris.insert(uri);
            }
        }
        let mcp = Arc::clone(self);
        Ok(ListenStream { mcp, id, filter, changes, _subscriptions: subscriptions, tasks })
    }

    /// Tasks to report: their current state, and each change.
    fn watched_tasks(
        &self,
        client: &ClientContext,
        wanted: &JsonObject,
    ) -> Result<Vec<WatchedTask>, RpcError> {
        if wanted.get("taskIds").is_some() && !client.supports_tasks() {
            return Err(missing_tasks_capability());
        }
        let ids: BTreeSet<String> = wanted.list("taskIds").iter().filter_map(Json::to_text).collect();
        let found = ids.iter().filter_map(|id| self.tasks.find(client, id));
        let followed = found.map(|task| {
            let mut changes = task.changes();
            changes.mark_changed();
            (task, changes)
        });
        Ok(followed.collect())
    }
}

impl ListenStream {
    fn meta(&self) -> JsonObject {
        JsonObject::new().with(meta::SUBSCRIPTION, self.id.json().clone())
    }

    /// First message of the stream.
    pub fn acknowledgement(&self) -> Message {
        let mut agreed = self.filter.to_members();
        if !self.tasks.is_empty() {
            let ids: Vec<&str> = self.tasks.iter().map(|(task, _)| task.id.as_str()).collect();
            agreed.set("taskIds", Json::of(&ids));
        }
        let params = JsonObject::new().with("notifications", agreed).with("_meta", self.meta());
        Message::Notification { method: "notifications/subscriptions/acknowledged".to_owned(), params }
    }

    /// Next notification; `None` when the hub closes.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            let change = tokio::select! {
                () = self.mcp.closing.cancelled() => return None,
                change = self.changes.recv() => change,
                at = next_change(&mut self.tasks) => {
                    if let Some(message) = self.task_notification(at) {
                        return Some(message);
                    }
                    continue;
                }
            };
            match change {
                Ok(change) => {
                    if let Some(message) =
                        change_notification(&change, &self.filter, |_| false, Some(self.meta()))
                    {
                        return Some(message);
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// Notification with the current state of a task; an ended task is removed.
    fn task_notification(&mut self, at: usize) -> Option<Message> {
        let (task, _) = self.tasks.get(at)?;
        let params = task.details().with("_meta", self.meta());
        if task.has_ended() {
            self.tasks.swap_remove(at);
        }
        Some(Message::Notification { method: "notifications/tasks".to_owned(), params })
    }

    /// Response that ends the stream.
    pub fn end_response(&self) -> Message {
        let meta = self.meta().with(meta::SERVER, server_info());
        Message::Response {
            id: self.id.clone(),
            result: JsonObject::new().with("resultType", "complete").with("_meta", meta),
        }
    }
}

/// Waits for a change; returns the index of the task.
async fn next_change(tasks: &mut [WatchedTask]) -> usize {
    if tasks.is_empty() {
        return std::future::pending().await;
    }
    let changes = tasks.iter_mut().map(|(_, changes)| Box::pin(changes.changed()));
    futures_util::future::select_all(changes).await.1
}
