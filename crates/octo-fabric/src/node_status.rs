//! Status of the nodes: each one answers for itself.

use crate::address::status_requests;
use crate::frame::Frame;
use crate::node::Node;
use crate::{BusError, Message};
use bytes::Bytes;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::task::AbortOnDropHandle;

/// Kind of the message with a status.
const STATUS: u8 = 48;
/// Maximum nodes in one answer.
const MAX_NODES: usize = 10_000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    pub node: String,
    pub version: String,
    pub roles: Vec<String>,
    pub uptime_seconds: u64,
    pub services: Vec<ServiceStatus>,
}

/// Something that one worker at a time serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceStatus {
    pub name: String,
    /// Whether this node serves it; otherwise it would take over.
    pub is_serving: bool,
    /// Fencing token of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
}

/// A status, and how long it took to arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusReply {
    pub status: NodeStatus,
    pub round_trip: Duration,
}

/// Answers requests for the status of this node, until it is dropped.
pub struct StatusServer(#[expect(dead_code, reason = "ends the task when dropped")] AbortOnDropHandle<()>);

/// Answers with what `status` returns.
pub async fn serve_status(
    node: &Arc<Node>,
    status: impl Fn() -> NodeStatus + Send + 'static,
) -> Result<StatusServer, BusError> {
    let mut requests = node.bus().subscribe(&status_requests(), None).await?;
    let node = Arc::clone(node);
    let task = tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let (Some(reply), Ok(body)) = (request.reply, serde_json::to_vec(&status())) else { continue };
            let frame = Frame::Whole { sequence: 0, kind: STATUS, body: body.into() };
            // Whoever asked asks again.
            let _ = node.bus().publish(Message::new(reply, None, frame.encode())).await;
        }
    });
    Ok(StatusServer(AbortOnDropHandle::new(task)))
}

/// Asks all nodes and returns what arrives within `wait`, sorted by name.
pub async fn collect_status(node: &Arc<Node>, wait: Duration) -> Result<Vec<StatusReply>, BusError> {
    let mut address = node.reply_address()?;
    let started = Instant::now();
    let request = Message::new(status_requests(), Some(address.subject.clone()), Bytes::new());
    node.bus().publish(request).await?;
    let mut replies = Vec::new();
    let deadline = tokio::time::Instant::from_std(started + wait);
    while replies.len() < MAX_NODES
        && let Ok(Some(message)) = tokio::time::timeout_at(deadline, address.receiver.recv()).await
    {
        if message.no_responders {
            break;
        }
        if let Ok(Frame::Whole { kind: STATUS, body, .. }) = Frame::decode(message.payload)
            && let Ok(status) = serde_json::from_slice(&body)
        {
            replies.push(StatusReply { status, round_trip: started.elapsed() });
        }
    }
    replies.sort_by(|one, two| one.status.node.cmp(&two.status.node));
    Ok(replies)
}
