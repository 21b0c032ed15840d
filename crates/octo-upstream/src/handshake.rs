//! Agreeing on a revision: the modern way first, the handshake of the legacy era where that fails.

use crate::calls::Entry;
use crate::fail::{Fail, Outcome};
use crate::inbox::Inbox;
use crate::meta;
use crate::report::About;
use crate::wire::{Request, Wire};
use octo_model::{Json, JsonObject, RpcError};
use octo_wire::{Era, Message, Revision, code};
use std::sync::Arc;
use std::time::Duration;

/// Answers to `initialize` that we can work with.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// What is known of the server's era before it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Tries the modern way for so long: a legacy program may not answer what it does not know.
    Probe(Duration),
    Only(Era),
}

/// What a server has said of itself.
pub(crate) struct Server {
    pub(crate) era: Era,
    pub(crate) capabilities: JsonObject,
    pub(crate) instructions: Option<String>,
    pub(crate) about: Option<About>,
}

pub(crate) async fn shake(wire: &Wire, inbox: &Arc<Inbox>, plan: Plan) -> Outcome<Server> {
    let server = match plan {
        Plan::Only(Era::Legacy) => initialize(wire, inbox).await?,
        Plan::Only(Era::Modern) => discover(wire, inbox).await?.ok_or_else(too_old)?,
        Plan::Probe(limit) => probe(wire, inbox, limit).await?,
    };
    let _ = inbox.era.set(server.era);
    Ok(server)
}

fn too_old() -> Fail {
    Fail::Garbled(format!("it does not speak revision {}", Revision::MODERN.as_str()))
}

/// Whoever does not answer in time is of the legacy era and knows no such question, or is modern and slow to start: then the
/// handshake is tried beside it, and the first good answer counts.
async fn probe(wire: &Wire, inbox: &Arc<Inbox>, limit: Duration) -> Outcome<Server> {
    let mut found = std::pin::pin!(discover(wire, inbox));
    if let Ok(found) = tokio::time::timeout(limit, &mut found).await {
        return match is_modern(found)? {
            Some(server) => Ok(server),
            None => initialize(wire, inbox).await,
        };
    }
    let mut shaken = std::pin::pin!(initialize(wire, inbox));
    tokio::select! {
        // A program that has just started may answer both at once.
        biased;
        found = &mut found => match is_modern(found)? {
            Some(server) => Ok(server),
            None => shaken.await,
        },
        shaken = &mut shaken => match shaken {
            Err(refused @ (Fail::Rpc(_) | Fail::Garbled(_))) => {
                let late = tokio::time::timeout(limit, found).await;
                late.ok().and_then(|found| is_modern(found).ok().flatten()).ok_or(refused)
            }
            shaken => shaken,
        },
    }
}

/// Nothing means that the server is of the legacy era. What stands for neither era is an error.
fn is_modern(found: Outcome<Option<Server>>) -> Outcome<Option<Server>> {
    match found {
        Ok(found) => Ok(found),
        Err(busy @ Fail::Status { code: 429 | 502..=504, .. }) => Err(busy),
        Err(Fail::Rpc(_) | Fail::Garbled(_) | Fail::Status { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

async fn discover(wire: &Wire, inbox: &Arc<Inbox>) -> Outcome<Option<Server>> {
    let mut found = request(wire, inbox, "server/discover", JsonObject::new(), Era::Modern).await;
    if let Err(Fail::Rpc(error)) = &found
        && error.code == code::UNSUPPORTED_REVISION
        && !supported(error).is_empty()
    {
        if !supported(error).iter().any(|revision| revision == Revision::MODERN.as_str()) {
            return Ok(None);
        }
        found = request(wire, inbox, "server/discover", JsonObject::new(), Era::Modern).await;
    }
    let found = found?;
    let speaks = texts(&found.list("supportedVersions")).iter().any(|text| text == Revision::MODERN.as_str());
    Ok(speaks.then(|| Server {
        era: Era::Modern,
        capabilities: found.object("capabilities"),
        instructions: found.text("instructions"),
        about: About::read(&found.object("_meta").object(octo_wire::meta::SERVER))
            .or_else(|| About::read(&found.object("serverInfo"))),
    }))
}

fn supported(error: &RpcError) -> Vec<String> {
    let data = error.data.as_ref().and_then(|data| data.members().ok()).unwrap_or_default();
    texts(&data.list("supported"))
}

fn texts(list: &[Json]) -> Vec<String> {
    list.iter().filter_map(Json::to_text).collect()
}

async fn initialize(wire: &Wire, inbox: &Arc<Inbox>) -> Outcome<Server> {
    let params = JsonObject::new()
        .with("protocolVersion", Revision::NEWEST_LEGACY.as_str())
        .with("capabilities", meta::legacy_capabilities())
        .with("clientInfo", meta::client_info());
    let answer = request(wire, inbox, "initialize", params, Era::Legacy).await?;
    let revision = answer.text("protocolVersion").unwrap_or_default();
    if !LEGACY.contains(&revision.as_str()) {
        return Err(Fail::Garbled(format!("it wants revision {revision:?}, which the hub does not know")));
    }
    if let Wire::Http(endpoint) = wire {
        endpoint.agree(&revision);
    }
    let ready =
        Message::Notification { method: "notifications/initialized".to_owned(), params: JsonObject::new() };
    match wire.send(ready).await {
        // Not every server knows what to answer here.
        Ok(()) | Err(Fail::Status { .. } | Fail::Rpc(_)) => {}
        Err(why) => return Err(why),
    }
    Ok(Server {
        era: Era::Legacy,
        capabilities: answer.object("capabilities"),
        instructions: answer.text("instructions"),
        about: About::read(&answer.object("serverInfo")),
    })
}

/// One request of the handshake. It is never cancelled: the specification forbids it.
async fn request(wire: &Wire, inbox: &Arc<Inbox>, method: &str, params: JsonObject, era: Era) -> Outcome {
    let id = inbox.calls.mint();
    let (params, _) = meta::dress(params, id, era, &JsonObject::new());
    inbox.calls.enter(id, Entry::default());
    let request = Request { id, method: method.to_owned(), params, era, mirrored: Vec::new() };
    let outcome = wire.exchange(inbox, request).await;
    inbox.calls.leave(id);
    outcome
}
