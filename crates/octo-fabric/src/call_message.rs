//! What nodes say to each other within a call, and their JSON forms.

use crate::call_stream::CallMessage;
use bytes::Bytes;
use octo_model::{JsonObject, Operation, RpcError, ToolError};
use octo_toolkit::{AskError, CallHeader, Event, Listing, SourceState};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Kinds of messages. A number is never used for something else.
pub(crate) mod kind {
    pub(crate) const CALL: u8 = 1;
    pub(crate) const LISTING_REQUEST: u8 = 2;
    pub(crate) const WATCH: u8 = 3;
    pub(crate) const RESULT: u8 = 16;
    pub(crate) const ERROR: u8 = 17;
    pub(crate) const LISTING: u8 = 18;
    pub(crate) const UNCHANGED: u8 = 19;
    pub(crate) const NOTIFICATION: u8 = 20;
    pub(crate) const QUESTION: u8 = 21;
    pub(crate) const ANSWER: u8 = 22;
    pub(crate) const TASK_STARTED: u8 = 23;
    pub(crate) const LISTING_CHANGED: u8 = 32;
    pub(crate) const EVENT: u8 = 33;
    pub(crate) const LEAVING: u8 = 34;
}

/// A call of the source.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallRequest {
    pub(crate) header: CallHeader,
    pub(crate) op: Operation,
    /// Capabilities of the client.
    #[serde(default, skip_serializing_if = "JsonObject::is_empty")]
    pub(crate) capabilities: JsonObject,
    /// Key of the client.
    #[serde(default)]
    pub(crate) client: u64,
}

/// A request for the listing, which also renews the watched resources of the node.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListingRequest {
    pub(crate) node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) known: Option<ListingVersion>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) watched: Vec<String>,
}

/// A listing of one server process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListingVersion {
    pub(crate) server: String,
    pub(crate) version: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListingReply {
    pub(crate) version: ListingVersion,
    /// Fencing token of the server's lease, if it has one. The highest token wins.
    #[serde(default)]
    pub(crate) token: u64,
    pub(crate) state: SourceState,
    pub(crate) listing: Listing,
}

/// The process of a server takes no more calls; another one follows.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LeavingNotice {
    pub(crate) server: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WatchRequest {
    pub(crate) node: String,
    pub(crate) uri: String,
    pub(crate) on: bool,
}

/// A notification for the client of the call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Notification {
    pub(crate) method: String,
    pub(crate) params: JsonObject,
}

/// A request to the client of the call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) id: u64,
    pub(crate) method: String,
    pub(crate) params: JsonObject,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) id: u64,
    pub(crate) outcome: AnswerOutcome,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerOutcome {
    Result(JsonObject),
    Unable,
    Refused(RpcError),
    Gone,
}

impl From<Result<JsonObject, AskError>> for AnswerOutcome {
    fn from(outcome: Result<JsonObject, AskError>) -> Self {
        match outcome {
            Ok(result) => Self::Result(result),
            Err(AskError::Unable) => Self::Unable,
            Err(AskError::Refused(error)) => Self::Refused(error),
            Err(AskError::Gone) => Self::Gone,
        }
    }
}

impl From<AnswerOutcome> for Result<JsonObject, AskError> {
    fn from(outcome: AnswerOutcome) -> Self {
        match outcome {
            AnswerOutcome::Result(result) => Ok(result),
            AnswerOutcome::Unable => Err(AskError::Unable),
            AnswerOutcome::Refused(error) => Err(AskError::Refused(error)),
            AnswerOutcome::Gone => Err(AskError::Gone),
        }
    }
}

/// A message with a JSON body.
pub(crate) trait MessageBody: Serialize + DeserializeOwned {
    const KIND: u8;

    fn to_message(&self) -> Result<CallMessage, ToolError> {
        let body = serde_json::to_vec(self).map_err(ToolError::internal)?;
        Ok(CallMessage { kind: Self::KIND, body: body.into() })
    }

    fn from_message(message: &CallMessage) -> Result<Self, ToolError> {
        serde_json::from_slice(&message.body).map_err(ToolError::internal)
    }
}

macro_rules! message_bodies {
    ($($body:ty => $kind:expr,)*) => { $(impl MessageBody for $body { const KIND: u8 = $kind; })* };
}

message_bodies! {
    CallRequest => kind::CALL,
    ListingRequest => kind::LISTING_REQUEST,
    WatchRequest => kind::WATCH,
    ToolError => kind::ERROR,
    ListingReply => kind::LISTING,
    Notification => kind::NOTIFICATION,
    Question => kind::QUESTION,
    Answer => kind::ANSWER,
    Event => kind::EVENT,
    LeavingNotice => kind::LEAVING,
}

/// A message without a body.
pub(crate) fn bare(kind: u8) -> CallMessage {
    CallMessage { kind, body: Bytes::new() }
}

/// The outcome of a call; the result object as it is.
pub(crate) fn outcome_message(outcome: &Result<JsonObject, ToolError>) -> Result<CallMessage, ToolError> {
    match outcome {
        Ok(result) => Ok(CallMessage { kind: kind::RESULT, body: result.to_json().bytes().clone() }),
        Err(error) => error.to_message(),
    }
}
