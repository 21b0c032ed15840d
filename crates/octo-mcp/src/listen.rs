//! `subscriptions/listen`: a long answer made of notices.

use crate::client::Client;
use crate::discover::server_info;
use crate::mcp::Mcp;
use crate::notice::{Filter, notice};
use crate::reply::rpc;
use octo_hub::Change;
use octo_model::{Members, RpcError};
use octo_wire::{Id, Message, code, meta};
use std::sync::Arc;
use tokio::sync::broadcast;

/// One subscription. Dropping it ends its watches.
pub struct Listening {
    mcp: Arc<Mcp>,
    client: Client,
    id: Id,
    filter: Filter,
    changes: broadcast::Receiver<Change>,
}

impl Mcp {
    /// Begins a subscription; what cannot be watched is left out of the acknowledgement.
    pub(crate) async fn listen(
        self: &Arc<Self>,
        client: &Client,
        id: Id,
        params: &Members,
    ) -> Result<Listening, RpcError> {
        if params.get("notifications").is_none_or(|wanted| !wanted.is_object()) {
            return Err(rpc(code::INVALID_PARAMS, "subscriptions/listen needs an object `notifications`."));
        }
        let mut filter = Filter::of(&params.object("notifications"));
        let changes = self.hub.changes();
        for uri in std::mem::take(&mut filter.uris) {
            if self.hub.watch(&client.profile, &client.caller, &uri, true).await.is_ok() {
                filter.uris.insert(uri);
            }
        }
        Ok(Listening { mcp: Arc::clone(self), client: client.clone(), id, filter, changes })
    }
}

impl Listening {
    fn meta(&self) -> Members {
        Members::new().with(meta::SUBSCRIPTION, self.id.json().clone())
    }

    /// The first message of the subscription.
    pub fn acknowledgement(&self) -> Message {
        let params =
            Members::new().with("notifications", self.filter.to_members()).with("_meta", self.meta());
        Message::Notification { method: "notifications/subscriptions/acknowledged".to_owned(), params }
    }

    /// The next notice; nothing when the hub is gone.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            let change = tokio::select! {
                () = self.mcp.closing.cancelled() => return None,
                change = self.changes.recv() => change,
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

    /// The answer that ends the subscription.
    pub fn ended(&self) -> Message {
        let meta = self.meta().with(meta::SERVER, server_info());
        Message::Response {
            id: self.id.clone(),
            result: Members::new().with("resultType", "complete").with("_meta", meta),
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let uris: Vec<String> = self.filter.uris.drain().collect();
        if uris.is_empty() {
            return;
        }
        let (mcp, client) = (Arc::clone(&self.mcp), self.client.clone());
        tokio::spawn(async move {
            for uri in uris {
                let _ = mcp.hub.watch(&client.profile, &client.caller, &uri, false).await;
            }
        });
    }
}
