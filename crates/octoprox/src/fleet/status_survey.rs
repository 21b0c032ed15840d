//! Asks all nodes of the fleet for their status.

use crate::app_error::AppError;
use crate::fleet::connect;
use crate::settings::Settings;
use octo_fabric::{BusState, Node, StatusReply, collect_metrics, collect_status};
use std::sync::Arc;
use std::time::Duration;

/// How long nodes may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
const METRICS_TIMEOUT: Duration = Duration::from_secs(2);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects as a node that serves nothing.
async fn connect_now(settings: &Settings) -> Result<Arc<Node>, AppError> {
    let node = connect(settings).await?;
    let mut state = node.bus().state();
    let connected = state.wait_for(|state| matches!(state, BusState::Connected(_)));
    match tokio::time::timeout(CONNECT_TIMEOUT, connected).await {
        Ok(Ok(_)) => Ok(node),
        _ => Err(AppError::new(
            "fleet.nats: cannot connect to any of the servers. Run `octoprox doctor` for the reason.",
        )),
    }
}

/// Returns the answers, sorted by name.
pub async fn collect_all(settings: &Settings) -> Result<Vec<StatusReply>, AppError> {
    let node = connect_now(settings).await?;
    collect_status(&node, ANSWER_TIMEOUT).await.map_err(|error| AppError::new(format!("{error}.")))
}

/// Returns the metrics of one node.
pub async fn metrics_of(settings: &Settings, name: &str) -> Result<String, AppError> {
    let node = connect_now(settings).await?;
    let text = collect_metrics(&node, name, METRICS_TIMEOUT).await;
    match text.map_err(|error| AppError::new(format!("{error}.")))? {
        Some(text) if !text.is_empty() => Ok(text),
        Some(_) => Err(AppError::new(format!(
            "The metrics of `{name}` do not fit into one message. If it is a front, request /metrics from it."
        ))),
        None => Err(AppError::new(format!(
            "`{name}` does not answer. Run `octoprox fleet status` for the nodes that do."
        ))),
    }
}

/// Names that several of the sorted answers have.
pub fn duplicate_names(replies: &[StatusReply]) -> Vec<String> {
    let pairs = replies.iter().zip(replies.iter().skip(1));
    let mut names: Vec<_> = pairs
        .filter(|(one, next)| one.status.node == next.status.node)
        .map(|(one, _)| one.status.node.clone())
        .collect();
    names.dedup();
    names
}
