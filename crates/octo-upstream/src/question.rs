//! What a server of the legacy era asks of its client, relayed to the one client it concerns.

use crate::calls::Behalf;
use crate::inbox::{Inbox, Origin};
use crate::wire::Wire;
use octo_model::{JsonObject, RpcError};
use octo_toolkit::AskError;
use octo_wire::{Id, Message, code, meta};
use std::sync::Arc;

/// Bytes of the params of a question to the client.
const MAX_QUESTION_BYTES: usize = 1 << 20;

pub(crate) fn take(inbox: &Arc<Inbox>, id: Id, method: String, params: JsonObject, origin: Origin, wire: &Wire) {
    if inbox.is_modern() {
        tracing::warn!(target: "upstream", server = %inbox.name, method, "a server of this revision must not ask; ignored");
        return;
    }
    match method.as_str() {
        "ping" => wire.post(Message::Response { id, result: JsonObject::new() }),
        "roots/list" | "sampling/createMessage" | "elicitation/create" => {
            if params.size() > MAX_QUESTION_BYTES {
                let why = format!("A question to the client may have {MAX_QUESTION_BYTES} bytes.");
                return wire.post(refusal(id, code::INVALID_PARAMS, &why));
            }
            match addressee(inbox, origin) {
                Some((call, _)) if !inbox.calls.has_room_for_question(call) => {
                    wire.post(refusal(
                        id,
                        code::INTERNAL,
                        "Too many questions of this call wait for an answer.",
                    ));
                }
                Some((call, behalf)) => relay(inbox, call, behalf, (id, method, params), wire),
                // Asking the wrong person would be worse than asking nobody.
                None => wire.post(refusal(
                    id,
                    code::INTERNAL,
                    "It is not clear which client this request is meant for.",
                )),
            }
        }
        _ => wire.post(refusal(id, code::METHOD_NOT_FOUND, &format!("Method not found: {method}"))),
    }
}

fn addressee(inbox: &Inbox, origin: Origin) -> Option<(u64, Behalf)> {
    match origin {
        Origin::Call(id) => inbox.calls.behalf(id).map(|behalf| (id, behalf)),
        Origin::Shared => inbox.calls.only_client(),
    }
}

fn relay(inbox: &Inbox, call: u64, behalf: Behalf, question: (Id, String, JsonObject), wire: &Wire) {
    let (id, method, mut params) = question;
    let mut meta = params.object("_meta");
    // A progress token means something to this server alone.
    if meta.remove(meta::PROGRESS_TOKEN).is_some() {
        params.set("_meta", meta);
    }
    let (asked, wire) = (id.clone(), wire.clone());
    let task = tokio::spawn(async move {
        let answer = behalf.peer.ask(&method, params).await;
        wire.post(reply(id, &method, answer));
    });
    inbox.calls.hang(call, asked, task.into());
}

fn reply(id: Id, method: &str, answer: Result<JsonObject, AskError>) -> Message {
    match answer {
        Ok(result) => Message::Response { id, result },
        Err(AskError::Unable) => {
            refusal(id, code::METHOD_NOT_FOUND, &format!("The client does not support {method}."))
        }
        Err(AskError::Refused(error)) => Message::Error { id: Some(id), error },
        Err(AskError::Gone) => refusal(id, code::INTERNAL, "The client went away before it answered."),
    }
}

fn refusal(id: Id, code: i64, message: &str) -> Message {
    Message::Error { id: Some(id), error: RpcError { code, message: message.to_owned(), data: None } }
}
