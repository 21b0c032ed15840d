//! Handling of single messages.

use crate::legacy_session::Session;
use octo_model::{JsonObject, RpcError};
use octo_wire::{Id, Message};

/// Handles a message that needs no response.
pub fn handle_incoming(session: &Session, message: Message) {
    match message {
        Message::Response { id, result } => session.resolve_question(Some(&id), Ok(result)),
        Message::Error { id, error } => session.resolve_question(id.as_ref(), Err(error)),
        Message::Notification { method, params } if method == "notifications/cancelled" => {
            if let Some(id) = params.get("requestId").cloned().and_then(Id::from_json) {
                session.cancel(&id);
            }
        }
        _ => {}
    }
}

/// Response message for the outcome of a call.
pub fn response_message(id: Id, done: Result<JsonObject, RpcError>) -> Message {
    match done {
        Ok(result) => Message::Response { id, result },
        Err(error) => Message::Error { id: Some(id), error },
    }
}
