//! One message in, one message out.

use crate::session::Session;
use octo_model::{JsonObject, RpcError};
use octo_wire::{Id, Message};

/// Takes what needs no answer.
pub fn received(session: &Session, message: Message) {
    match message {
        Message::Response { id, result } => session.answered(Some(&id), Ok(result)),
        Message::Error { id, error } => session.answered(id.as_ref(), Err(error)),
        Message::Notification { method, params } if method == "notifications/cancelled" => {
            if let Some(id) = params.get("requestId").cloned().and_then(Id::from_json) {
                session.cancel(&id);
            }
        }
        _ => {}
    }
}

/// A call's end as the message that tells it.
pub fn response(id: Id, done: Result<JsonObject, RpcError>) -> Message {
    match done {
        Ok(result) => Message::Response { id, result },
        Err(error) => Message::Error { id: Some(id), error },
    }
}
