//! Handling of single messages.

use crate::legacy_session::Session;
use octo_model::{JsonObject, RpcError};
use octo_wire::{Id, Message};

/// Answer to a question.
pub type Answer = Result<JsonObject, RpcError>;

/// Handles a message that needs no response. Returns one that belongs to a call elsewhere, if anywhere.
pub fn handle_incoming(session: &Session, message: Message) -> Option<Message> {
    if let Some((question, answer)) = client_answer(&message) {
        return (!session.resolve_question(question, answer)).then_some(message);
    }
    match &message {
        Message::Notification { method, params } if method == "notifications/cancelled" => {
            let id = params.get("requestId").cloned().and_then(Id::from_json)?;
            (!session.cancel(&id)).then_some(message)
        }
        _ => None,
    }
}

/// The number of a question, and the answer to it.
pub fn client_answer(message: &Message) -> Option<(u64, Answer)> {
    match message {
        Message::Response { id, result } => Some((id.to_number()?, Ok(result.clone()))),
        Message::Error { id, error } => Some((id.as_ref()?.to_number()?, Err(error.clone()))),
        Message::Request { .. } | Message::Notification { .. } => None,
    }
}

/// Response message for the outcome of a call.
pub fn response_message(id: Id, done: Result<JsonObject, RpcError>) -> Message {
    match done {
        Ok(result) => Message::Response { id, result },
        Err(error) => Message::Error { id: Some(id), error },
    }
}
