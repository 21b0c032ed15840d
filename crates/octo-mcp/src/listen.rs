//! `subscriptions/listen`: a long answer made of notices.

use crate::client::Client;
use crate::discover::server_info;
use crate::mcp::Mcp;
use crate::notice::{Filter, notice};
use crate::reply::rpc;
use crate::task::Task;
use crate::tasks::needs_tasks;
use octo_hub::{Change, MAX_SUBSCRIPTIONS, Subscription};
use octo_model::{Json, JsonObject, Method, RpcError};
use octo_toolkit::NoPeer;
use octo_wire::{Id, Message, code, meta};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

/// One `subscriptions/listen`. Dropping it ends its subscriptions.
pub struct Listening {
    mcp: Arc<Mcp>,
    id: Id,
    filter: Filter,
    changes: broadcast::Receiver<Change>,
    /// Held for as long as the subscription lasts.
    _subscriptions: Vec<Subscription>,
    /// Tasks that have not been told to their end.
    tasks: Vec<Followed>,
}

type Followed = (Arc<Task>, watch::Receiver<()>);

impl Mcp {
    /// Begins a subscription; what cannot be watched is left out of the acknowledgement.
    pub(crate) async fn listen(
        self: &Arc<Self>,
        client: &Client,
        id: Id,
        params: &JsonObject,
    ) -> Result<Listening, RpcError> {
        if params.get("notifications").is_none_or(|wanted| !wanted.is_object()) {
            return Err(rpc(code::INVALID_PARAMS, "subscriptions/listen needs an object `notifications`."));
        }
        let wanted = params.object("notifications");
        let tasks = self.followed(client, &wanted)?;
        let mut filter = Filter::of(&wanted);
        if filter.uris.len() > MAX_SUBSCRIPTIONS {
            let why = format!("At most {MAX_SUBSCRIPTIONS} resources can be subscribed to at once.");
            return Err(rpc(code::INVALID_PARAMS, why));
        }
        let changes = self.hub.changes();
        let mut subscriptions = Vec::new();
        for uri in std::mem::take(&mut filter.uris) {
            let params = JsonObject::new().with("uri", uri.as_str());
            let request =
                self.request(client, Method::Subscribe, params, Arc::new(NoPeer), CancellationToken::new())?;
            if let Ok(subscription) = self.hub.subscribe(&request).await {
                subscriptions.push(subscription);
                filter.uris.insert(uri);
            }
        }
        let mcp = Arc::clone(self);
        Ok(Listening { mcp, id, filter, changes, _subscriptions: subscriptions, tasks })
    }

    /// The tasks that are to be told of: as they are now, and at each change.
    fn followed(&self, client: &Client, wanted: &JsonObject) -> Result<Vec<Followed>, RpcError> {
        if wanted.get("taskIds").is_some() && !client.takes_tasks() {
            return Err(needs_tasks());
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

impl Listening {
    fn meta(&self) -> JsonObject {
        JsonObject::new().with(meta::SUBSCRIPTION, self.id.json().clone())
    }

    /// The first message of the subscription.
    pub fn acknowledgement(&self) -> Message {
        let mut agreed = self.filter.to_members();
        if !self.tasks.is_empty() {
            let ids: Vec<&str> = self.tasks.iter().map(|(task, _)| task.id.as_str()).collect();
            agreed.set("taskIds", Json::of(&ids));
        }
        let params = JsonObject::new().with("notifications", agreed).with("_meta", self.meta());
        Message::Notification { method: "notifications/subscriptions/acknowledged".to_owned(), params }
    }

    /// The next notice; nothing when the hub is gone.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            let change = tokio::select! {
                () = self.mcp.closing.cancelled() => return None,
                change = self.changes.recv() => change,
                at = next_change(&mut self.tasks) => {
                    if let Some(message) = self.told(at) {
                        return Some(message);
                    }
                    continue;
                }
            };
            match change {
                Ok(change) => {
                    if let Some(message) = notice(&change, &self.filter, |_| false, Some(self.meta())) {
                        return Some(message);
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// A task as it is now; one that has ended is not told again.
    fn told(&mut self, at: usize) -> Option<Message> {
        let (task, _) = self.tasks.get(at)?;
        let params = task.detailed().with("_meta", self.meta());
        if task.has_ended() {
            self.tasks.swap_remove(at);
        }
        Some(Message::Notification { method: "notifications/tasks".to_owned(), params })
    }

    /// The answer that ends the subscription.
    pub fn ended(&self) -> Message {
        let meta = self.meta().with(meta::SERVER, server_info());
        Message::Response {
            id: self.id.clone(),
            result: JsonObject::new().with("resultType", "complete").with("_meta", meta),
        }
    }
}

/// Which of them has changed.
async fn next_change(tasks: &mut [Followed]) -> usize {
    if tasks.is_empty() {
        return std::future::pending().await;
    }
    let changes = tasks.iter_mut().map(|(_, changes)| Box::pin(changes.changed()));
    futures_util::future::select_all(changes).await.1
}
