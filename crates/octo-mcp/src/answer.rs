//! The methods that both eras share.

use crate::client::Client;
use crate::discover::no_method;
use crate::mcp::Mcp;
use crate::reply::{failed, rpc};
use octo_hub::{CallOutcome, ListKind, Request};
use octo_model::{Json, JsonObject, Method, Operation, RpcError};
use octo_toolkit::Peer;
use octo_wire::{Era, code};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What a method asks for.
pub enum Asked {
    List(ListKind),
    Operation(Method),
}

pub fn asked(method: &str) -> Option<Asked> {
    Some(match method {
        "tools/call" => Asked::Operation(Method::CallTool),
        "tools/list" => Asked::List(ListKind::Tools),
        "prompts/get" => Asked::Operation(Method::GetPrompt),
        "prompts/list" => Asked::List(ListKind::Prompts),
        "resources/read" => Asked::Operation(Method::ReadResource),
        "resources/list" => Asked::List(ListKind::Resources),
        "resources/templates/list" => Asked::List(ListKind::Templates),
        "completion/complete" => Asked::Operation(Method::Complete),
        _ => return None,
    })
}

impl Mcp {
    pub(crate) async fn list(
        &self,
        client: &Client,
        kind: ListKind,
        params: &JsonObject,
    ) -> Result<JsonObject, RpcError> {
        let cursor = params.text("cursor");
        if params.get("cursor").is_some() && cursor.is_none() {
            return Err(rpc(code::INVALID_PARAMS, "The cursor is not a string."));
        }
        let page = self.hub.list(&client.profile, kind, &client.caller, cursor.as_deref()).await.map_err(
            |error| {
                error.rpc.map_or_else(|| rpc(code::INVALID_PARAMS, error.message.clone()), |error| *error)
            },
        )?;
        let mut result = JsonObject::new().with(kind.member(), page.items);
        if let Some(next) = page.next {
            result.set("nextCursor", next.as_str());
        }
        if client.revision.era() == Era::Modern {
            let ttl = if page.view.is_starting { 0 } else { page.view.ttl_ms.min(60_000) };
            result.set("ttlMs", Json::of(&ttl)).set("cacheScope", self.scope());
        }
        Ok(result)
    }

    /// A request for the hub, from the params of a client's.
    pub(crate) fn request(
        &self,
        client: &Client,
        method: Method,
        params: JsonObject,
        peer: Arc<dyn Peer>,
        cancel: CancellationToken,
    ) -> Result<Request, RpcError> {
        let name = item_name(method, &params)?;
        let trace = params.inner_text("_meta", "traceparent");
        Ok(Request {
            op: Operation { method, name, params },
            caller: Arc::clone(&client.caller),
            frontend: client.face,
            profile: client.profile.clone(),
            peer,
            cancel,
            timeout: None,
            trace,
        })
    }
}

fn item_name(method: Method, params: &JsonObject) -> Result<String, RpcError> {
    let name = match method {
        Method::CallTool | Method::GetPrompt => params.text("name"),
        Method::ReadResource | Method::Subscribe | Method::Unsubscribe => params.text("uri"),
        Method::Complete => {
            let reference = params.object("ref");
            reference.text("name").or_else(|| reference.text("uri"))
        }
    };
    let member = if method.names_resource() { "uri" } else { "name" };
    name.ok_or_else(|| rpc(code::INVALID_PARAMS, format!("{} needs a {member}.", method.as_str())))
}

/// A call's outcome as a result or a protocol error.
pub fn outcome(method: Method, called: CallOutcome, client: &Client) -> Result<JsonObject, RpcError> {
    match called.outcome {
        Ok(result) => Ok(result),
        Err(error) => failed(method, &error, client.revision),
    }
}

/// What a method name that nobody knows is answered with.
pub fn unknown(method: &str) -> RpcError {
    no_method(method)
}
