//! Negotiation of a revision: `server/discover` first, then the legacy handshake.

use crate::error::{UpstreamError, UpstreamResult};
use crate::session::dispatcher::Dispatcher;
use crate::session::pending_requests::PendingRequest;
use crate::session::request_meta;
use crate::session::server_info::ServerInfo;
use crate::transport::{Transport, TransportRequest};
use octo_model::{Json, JsonObject, RpcError};
use octo_ports::pins::MAX_DEFINITION_BYTES;
use octo_wire::{Era, Message, Revision, code};
use std::sync::Arc;
use std::time::Duration;

/// Supported revisions in the response to `initialize`.
const LEGACY_REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Maximum bytes of what a server declares about itself.
const MAX_DECLARATION_BYTES: usize = 1 << 20;

/// What is known about the era before the negotiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NegotiationPlan {
    /// Tries `server/discover` for this long: a legacy program may not answer unknown methods.
    Probe(Duration),
    Fixed(Era),
}

/// What the server declared about itself.
pub(crate) struct NegotiatedServer {
    pub(crate) era: Era,
    pub(crate) capabilities: JsonObject,
    pub(crate) instructions: Option<String>,
    pub(crate) info: Option<ServerInfo>,
}

pub(crate) async fn negotiate(
    wire: &Transport,
    inbox: &Arc<Dispatcher>,
    plan: NegotiationPlan,
) -> UpstreamResult<NegotiatedServer> {
    let server = match plan {
        NegotiationPlan::Fixed(Era::Legacy) => initialize(wire, inbox).await?,
        NegotiationPlan::Fixed(Era::Modern) => {
            discover(wire, inbox).await?.ok_or_else(unsupported_revision)?
        }
        NegotiationPlan::Probe(limit) => probe(wire, inbox, limit).await?,
    };
    let _ = inbox.era.set(server.era);
    Ok(server)
}

fn unsupported_revision() -> UpstreamError {
    UpstreamError::Protocol(format!("server does not support revision {}", Revision::MODERN.as_str()))
}

/// A server that does not respond in time is legacy and ignores the unknown method, or modern and slow to start. Then
/// the handshake runs concurrently, and the first successful response counts.
async fn probe(
    wire: &Transport,
    inbox: &Arc<Dispatcher>,
    limit: Duration,
) -> UpstreamResult<NegotiatedServer> {
    let mut found = std::pin::pin!(discover(wire, inbox));
    if let Ok(found) = tokio::time::timeout(limit, &mut found).await {
        return match modern_or_legacy(found)? {
            Some(server) => Ok(server),
            None => initialize(wire, inbox).await,
        };
    }
    let mut shaken = std::pin::pin!(initialize(wire, inbox));
    tokio::select! {
        // A program that has just started may answer both at once.
        biased;
        found = &mut found => match modern_or_legacy(found)? {
            Some(server) => Ok(server),
            None => shaken.await,
        },
        shaken = &mut shaken => match shaken {
            Err(refused @ (UpstreamError::Rpc(_) | UpstreamError::Protocol(_))) => {
                let late = tokio::time::timeout(limit, found).await;
                late.ok().and_then(|found| modern_or_legacy(found).ok().flatten()).ok_or(refused)
            }
            shaken => shaken,
        },
    }
}

/// `None` means legacy. A response that indicates neither era is an error.
fn modern_or_legacy(
    found: UpstreamResult<Option<NegotiatedServer>>,
) -> UpstreamResult<Option<NegotiatedServer>> {
    match found {
        Ok(found) => Ok(found),
        Err(busy @ UpstreamError::Status { code: 429 | 502..=504, .. }) => Err(busy),
        Err(UpstreamError::Rpc(_) | UpstreamError::Protocol(_) | UpstreamError::Status { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

async fn discover(wire: &Transport, inbox: &Arc<Dispatcher>) -> UpstreamResult<Option<NegotiatedServer>> {
    let mut found = request(wire, inbox, "server/discover", JsonObject::new(), Era::Modern).await;
    if let Err(UpstreamError::Rpc(error)) = &found
        && error.code == code::UNSUPPORTED_REVISION
        && !supported_revisions(error).is_empty()
    {
        if !supported_revisions(error).iter().any(|revision| revision == Revision::MODERN.as_str()) {
            return Ok(None);
        }
        found = request(wire, inbox, "server/discover", JsonObject::new(), Era::Modern).await;
    }
    let found = found?;
    let speaks =
        strings(&found.list("supportedVersions")).iter().any(|text| text == Revision::MODERN.as_str());
    Ok(speaks.then(|| NegotiatedServer {
        era: Era::Modern,
        capabilities: found.object("capabilities").detached(),
        instructions: instructions_in(&found, inbox),
        info: ServerInfo::parse(&found.object("_meta").object(octo_wire::meta::SERVER))
            .or_else(|| ServerInfo::parse(&found.object("serverInfo"))),
    }))
}

fn supported_revisions(error: &RpcError) -> Vec<String> {
    let data = error.data.as_ref().and_then(|data| data.members().ok()).unwrap_or_default();
    strings(&data.list("supported"))
}

fn strings(list: &[Json]) -> Vec<String> {
    list.iter().filter_map(Json::to_text).collect()
}

async fn initialize(wire: &Transport, inbox: &Arc<Dispatcher>) -> UpstreamResult<NegotiatedServer> {
    let params = JsonObject::new()
        .with("protocolVersion", Revision::NEWEST_LEGACY.as_str())
        .with("capabilities", request_meta::legacy_capabilities())
        .with("clientInfo", request_meta::client_info());
    let answer = request(wire, inbox, "initialize", params, Era::Legacy).await?;
    let revision = answer.text("protocolVersion").unwrap_or_default();
    if !LEGACY_REVISIONS.contains(&revision.as_str()) {
        return Err(UpstreamError::Protocol(format!("unsupported revision {revision:?}")));
    }
    if let Transport::Http(endpoint) = wire {
        endpoint.set_revision(&revision);
    }
    let ready =
        Message::Notification { method: "notifications/initialized".to_owned(), params: JsonObject::new() };
    match wire.send(ready).await {
        // Not every server answers notifications correctly.
        Ok(()) | Err(UpstreamError::Status { .. } | UpstreamError::Rpc(_)) => {}
        Err(why) => return Err(why),
    }
    Ok(NegotiatedServer {
        era: Era::Legacy,
        capabilities: answer.object("capabilities").detached(),
        instructions: instructions_in(&answer, inbox),
        info: ServerInfo::parse(&answer.object("serverInfo")),
    })
}

/// One request of the handshake. Never cancelled: the specification forbids it.
async fn request(
    wire: &Transport,
    inbox: &Arc<Dispatcher>,
    method: &str,
    params: JsonObject,
    era: Era,
) -> UpstreamResult {
    let id = inbox.pending.next_id();
    let (capabilities, extensions) = request_meta::own_capabilities();
    let (params, _) = request_meta::with_request_meta(params, id, era, capabilities, &extensions);
    inbox.pending.insert(id, PendingRequest::default());
    let request = TransportRequest { id, method: method.to_owned(), params, era, param_headers: Vec::new() };
    let outcome = wire.exchange(inbox, request).await;
    inbox.pending.remove(id);
    match outcome {
        Ok(answer) if answer.size() > MAX_DECLARATION_BYTES => {
            Err(UpstreamError::Protocol(format!("the answer to {method} has more than 1 MiB")))
        }
        outcome => outcome,
    }
}

/// The instructions, unless they are larger than a definition may be.
fn instructions_in(answer: &JsonObject, inbox: &Dispatcher) -> Option<String> {
    let text = answer.text("instructions")?;
    if text.len() > MAX_DEFINITION_BYTES {
        tracing::warn!(target: "upstream", server = %inbox.name, size = text.len(), limit = MAX_DEFINITION_BYTES, "instructions skipped: too large");
        return None;
    }
    Some(text)
}
