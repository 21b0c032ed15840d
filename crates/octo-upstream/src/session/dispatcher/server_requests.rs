//! Requests of a legacy server to its client, forwarded to the one client concerned.

use crate::session::dispatcher::{Dispatcher, MessageOrigin};
use crate::session::pending_requests::RequestClient;
use crate::session::post_message::PostMessage;
use crate::session::upstream_task::RELATED_TASK;
use octo_model::{JsonObject, RpcError};
use octo_toolkit::AskError;
use octo_wire::{Id, Message, code, meta};
use std::sync::Arc;

/// Maximum size of the params of a server request, in bytes.
const MAX_SERVER_REQUEST_BYTES: usize = 1 << 20;

pub(crate) fn handle(
    inbox: &Arc<Dispatcher>,
    id: Id,
    method: String,
    params: JsonObject,
    origin: MessageOrigin,
    wire: &impl PostMessage,
) {
    if inbox.is_modern() {
        tracing::warn!(target: "upstream", server = %inbox.name, method, "server request ignored: not allowed in this revision");
        return;
    }
    match method.as_str() {
        "ping" => wire.post(Message::Response { id, result: JsonObject::new() }),
        "roots/list" | "sampling/createMessage" | "elicitation/create" => {
            if params.size() > MAX_SERVER_REQUEST_BYTES {
                let why = format!("A request to the client is limited to {MAX_SERVER_REQUEST_BYTES} bytes.");
                return wire.post(error_response(id, code::INVALID_PARAMS, &why));
            }
            match client_for(inbox, origin) {
                Some((call, _)) if !inbox.pending.has_room_for_server_request(call) => {
                    wire.post(error_response(id, code::INTERNAL, "Too many pending requests of this call."));
                }
                Some((call, behalf)) => forward_to_client(inbox, call, behalf, (id, method, params), wire),
                // Asking the wrong person would be worse than asking no one.
                None => wire.post(error_response(
                    id,
                    code::INTERNAL,
                    "Cannot determine the client for this request.",
                )),
            }
        }
        _ => wire.post(error_response(id, code::METHOD_NOT_FOUND, &format!("Method not found: {method}"))),
    }
}

fn client_for(inbox: &Dispatcher, origin: MessageOrigin) -> Option<(u64, RequestClient)> {
    match origin {
        MessageOrigin::Call(id) => inbox.pending.client_of(id).map(|behalf| (id, behalf)),
        MessageOrigin::Shared => inbox.pending.sole_client(),
    }
}

fn forward_to_client(
    inbox: &Dispatcher,
    call: u64,
    behalf: RequestClient,
    question: (Id, String, JsonObject),
    wire: &impl PostMessage,
) {
    let (id, method, mut params) = question;
    let mut meta = params.object("_meta");
    // A progress token and the id of a task are meaningful to this server only.
    let removed = [meta::PROGRESS_TOKEN, RELATED_TASK].map(|key| meta.remove(key).is_some());
    if removed.contains(&true) {
        params.set("_meta", meta);
    }
    let (asked, wire) = (id.clone(), wire.clone());
    let task = tokio::spawn(async move {
        let answer = behalf.peer.ask(&method, params).await;
        wire.post(response_to_server(id, &method, answer));
    });
    inbox.pending.attach_server_request(call, asked, task.into());
}

fn response_to_server(id: Id, method: &str, answer: Result<JsonObject, AskError>) -> Message {
    match answer {
        Ok(result) => Message::Response { id, result },
        Err(AskError::Unable) => {
            error_response(id, code::METHOD_NOT_FOUND, &format!("The client does not support {method}."))
        }
        Err(AskError::Refused(error)) => Message::Error { id: Some(id), error },
        Err(AskError::Gone) => error_response(id, code::INTERNAL, "Client disconnected before it answered."),
    }
}

fn error_response(id: Id, code: i64, message: &str) -> Message {
    Message::Error { id: Some(id), error: RpcError { code, message: message.to_owned(), data: None } }
}
