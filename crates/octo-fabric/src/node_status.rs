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
/// Kind of the request for metrics, whose body is the name of a node, and of the answer.
const METRICS_REQUEST: u8 = 50;
const METRICS: u8 = 51;
/// Maximum nodes in one answer.
const MAX_NODES: usize = 10_000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    pub node: String,
    pub version: String,
    pub roles: Vec<String>,
    pub uptime_seconds: u64,
    pub services: Vec<ServiceStatus>,
    /// Of a node that records calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditStatus>,
}

/// Audit records that are not committed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditStatus {
    pub queued: u64,
    /// Age of the oldest one.
    pub lag_ms: u64,
}

/// Something that one worker at a time serves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceStatus {
    pub name: String,
    /// Whether this node serves it; otherwise it would take over.
    pub is_serving: bool,
    /// Fencing token of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// Whether this node would not take over, because its files are not those of the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_other_files: bool,
}

/// A status, and how long it took to arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusReply {
    pub status: NodeStatus,
    pub round_trip: Duration,
}

/// What a node tells about itself.
pub trait NodeReport: Send + Sync {
    fn status(&self) -> NodeStatus;

    /// In the text format of Prometheus.
    fn metrics(&self) -> String;
}

/// Answers requests for the status of this node, until it is dropped.
pub struct StatusServer(#[expect(dead_code, reason = "ends the task when dropped")] AbortOnDropHandle<()>);

pub async fn serve_status(node: &Arc<Node>, report: Arc<dyn NodeReport>) -> Result<StatusServer, BusError> {
    let mut requests = node.bus().subscribe(&status_requests(), None).await?;
    let node = Arc::clone(node);
    let task = tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let (Some(reply), Some(frame)) = (request.reply, answer(&node, &*report, request.payload)) else {
                continue;
            };
            // Whoever asked asks again.
            let _ = node.bus().publish(Message::new(reply, None, frame.encode())).await;
        }
    });
    Ok(StatusServer(AbortOnDropHandle::new(task)))
}

/// The answer to a request, unless another node is asked.
fn answer(node: &Node, report: &dyn NodeReport, request: Bytes) -> Option<Frame> {
    if request.is_empty() {
        let body = serde_json::to_vec(&report.status()).ok()?;
        return Some(Frame::Whole { sequence: 0, kind: STATUS, body: body.into() });
    }
    match Frame::decode(request) {
        Ok(Frame::Whole { kind: METRICS_REQUEST, body, .. }) if body == node.name().as_bytes() => {
            let mut text = report.metrics();
            if text.len() > node.part_len() {
                text.clear();
            }
            Some(Frame::Whole { sequence: 0, kind: METRICS, body: text.into() })
        }
        _ => None,
    }
}

/// Asks one node for its metrics. Returns `None` if it does not answer in time, and an empty text if they are too large
/// for one message.
pub async fn collect_metrics(node: &Arc<Node>, of: &str, wait: Duration) -> Result<Option<String>, BusError> {
    let mut address = node.reply_address(&status_requests())?;
    let body = Bytes::copy_from_slice(of.as_bytes());
    let request = Frame::Whole { sequence: 0, kind: METRICS_REQUEST, body }.encode();
    node.bus().publish(Message::new(status_requests(), Some(address.subject.clone()), request)).await?;
    let deadline = tokio::time::Instant::now() + wait;
    while let Ok(Some(message)) = tokio::time::timeout_at(deadline, address.receiver.recv()).await {
        if message.no_responders {
            break;
        }
        if let Ok(Frame::Whole { kind: METRICS, body, .. }) = Frame::decode(message.payload) {
            return Ok(String::from_utf8(body.to_vec()).ok());
        }
    }
    Ok(None)
}

/// Asks all nodes and returns what arrives within `wait`, sorted by name.
pub async fn collect_status(node: &Arc<Node>, wait: Duration) -> Result<Vec<StatusReply>, BusError> {
    let mut address = node.reply_address(&status_requests())?;
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
