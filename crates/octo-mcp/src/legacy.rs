//! The legacy era: a handshake, a session, questions in the middle of a call.

use crate::answer::{Asked, asked, outcome, unknown};
use crate::client::ability_for;
use crate::mcp::Mcp;
use crate::peer::{LegacyPeer, Outbox};
use crate::reply::rpc;
use crate::session::Session;
use octo_model::{Members, Method, RpcError};
use octo_toolkit::{Ask, Peer};
use octo_wire::Level;
use octo_wire::{code, meta};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A modern upstream may ask again after each answer, but not for ever.
const MAX_ROUNDS: usize = 16;

impl Mcp {
    /// Answers one request of a legacy client after its handshake.
    pub(crate) async fn legacy(
        self: &Arc<Self>,
        session: Arc<Session>,
        method: &str,
        params: Members,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<Members, RpcError> {
        match asked(method) {
            Some(Asked::List(kind)) => self.list(&session.client, kind, &params).await,
            Some(Asked::Operation(operation)) => self.rounds(session, operation, params, out, cancel).await,
            None => match method {
                "ping" => Ok(Members::new()),
                "logging/setLevel" => set_level(&session, &params),
                "resources/subscribe" => self.watch(&session, &params, true).await,
                "resources/unsubscribe" => self.watch(&session, &params, false).await,
                _ => Err(unknown(method)),
            },
        }
    }

    /// Calls, and as long as the answer is a question, asks the client and calls again.
    async fn rounds(
        self: &Arc<Self>,
        session: Arc<Session>,
        method: Method,
        mut params: Members,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<Members, RpcError> {
        if let Some(level) = session.level() {
            let about = params.object("_meta").with(meta::LOG_LEVEL, level.as_str());
            params.set("_meta", about);
        }
        let peer: Arc<dyn Peer> = Arc::new(LegacyPeer { session: Arc::clone(&session), out });
        for _ in 0..MAX_ROUNDS {
            let request =
                self.request(&session.client, method, params.clone(), Arc::clone(&peer), cancel.clone())?;
            let mut result = outcome(method, self.hub.call(request).await, &session.client)?;
            if result.text("resultType").as_deref() != Some("input_required") {
                result.remove("resultType");
                return Ok(result);
            }
            params.set("inputResponses", ask_all(&peer, &result.object("inputRequests")).await?);
            params.remove("requestState");
            if let Some(state) = result.get("requestState") {
                params.set("requestState", state.clone());
            }
        }
        Err(rpc(code::INTERNAL, "The server behind the hub keeps asking. Give it all it needs at once."))
    }

    async fn watch(&self, session: &Session, params: &Members, on: bool) -> Result<Members, RpcError> {
        let uri =
            params.text("uri").ok_or_else(|| rpc(code::INVALID_PARAMS, "A subscription needs a uri."))?;
        let client = &session.client;
        self.hub.watch(&client.profile, &client.caller, &uri, on).await.map_err(|error| {
            error.rpc.clone().map_or_else(|| rpc(code::INVALID_PARAMS, error.text()), |error| *error)
        })?;
        session.watch(&uri, on);
        Ok(Members::new())
    }
}

fn set_level(session: &Session, params: &Members) -> Result<Members, RpcError> {
    let level = params.text("level").and_then(|text| Level::parse(&text));
    session.set_level(level.ok_or_else(|| rpc(code::INVALID_PARAMS, "There is no such log level."))?);
    Ok(Members::new())
}

/// Puts the questions of a modern upstream to a legacy client, one after the other.
async fn ask_all(peer: &Arc<dyn Peer>, requests: &Members) -> Result<Members, RpcError> {
    let mut answers = Members::new();
    for (key, request) in requests.iter() {
        let request = request.members().unwrap_or_default();
        let method = request.text("method").unwrap_or_default();
        let answer =
            peer.ask(&method, request.object("params")).await.map_err(|why| unanswered(&method, why))?;
        answers.set(key, answer);
    }
    Ok(answers)
}

fn unanswered(method: &str, why: Ask) -> RpcError {
    match why {
        Ask::Refused(error) => error,
        Ask::Gone => rpc(code::INTERNAL, "The client went away before it answered."),
        Ask::Unable => {
            let ability = ability_for(method).unwrap_or("this");
            rpc(code::INVALID_PARAMS, format!("This call needs a client that supports {ability}."))
        }
    }
}
