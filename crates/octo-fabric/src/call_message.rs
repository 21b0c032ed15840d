//! What nodes say to each other within a call, and their JSON forms.

use crate::ServedFiles;
use crate::call_stream::{CallMessage, OutgoingMessage};
use bytes::{Buf, BufMut, Bytes};
use octo_model::{JsonObject, Method, Operation, RpcError, ToolError};
use octo_toolkit::{AskError, CallContext, CallHeader, Event, Listing, SourceState};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Kinds of messages. A number is never used for something else; 1 was a call as one JSON object.
pub(crate) mod kind {
    pub(crate) const CALL: u8 = 4;
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
#[derive(Debug)]
pub(crate) struct CallRequest {
    pub(crate) header: CallHeader,
    pub(crate) op: Operation,
    /// Capabilities of the client.
    pub(crate) capabilities: JsonObject,
    /// Key of the client.
    pub(crate) client: u64,
}

/// A call without its parameters, which follow it in the message: they may be large, and nested to any depth that is
/// accepted.
#[derive(Serialize, Deserialize)]
struct CallEnvelope<'a> {
    header: Cow<'a, CallHeader>,
    method: Method,
    name: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "JsonObject::is_empty")]
    capabilities: Cow<'a, JsonObject>,
    #[serde(default)]
    client: u64,
}

/// The length of the envelope, the envelope, and the parameters.
pub(crate) fn call_message(op: Operation, cx: &CallContext) -> Result<OutgoingMessage, ToolError> {
    let envelope = CallEnvelope {
        header: Cow::Borrowed(cx.header()),
        method: op.method,
        name: Cow::Borrowed(&op.name),
        capabilities: Cow::Borrowed(cx.peer.capabilities()),
        client: cx.peer.key(),
    };
    let mut head = vec![0; size_of::<u32>()];
    serde_json::to_writer(&mut head, &envelope).map_err(ToolError::internal)?;
    let len = u32::try_from(head.len() - size_of::<u32>()).map_err(ToolError::internal)?;
    head.as_mut_slice().put_u32(len);
    Ok(OutgoingMessage { kind: kind::CALL, head: head.into(), object: Some(op.params) })
}

impl CallRequest {
    pub(crate) fn from_message(message: &CallMessage) -> Result<Self, ToolError> {
        let mut params = message.body.clone();
        let envelope = params.try_get_u32().ok().filter(|len| *len as usize <= params.len());
        let envelope = envelope.ok_or_else(|| ToolError::internal("a truncated call"))?;
        let envelope = params.split_to(envelope as usize);
        let CallEnvelope { header, method, name, capabilities, client } =
            serde_json::from_slice(&envelope).map_err(ToolError::internal)?;
        let params = JsonObject::parse(params).map_err(ToolError::internal)?;
        let op = Operation { method, name: name.into_owned(), params };
        let (header, capabilities) = (header.into_owned(), capabilities.into_owned());
        Ok(Self { header, op, capabilities, client })
    }
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
    /// Of a workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<ServedFiles>,
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

    fn to_message(&self) -> Result<OutgoingMessage, ToolError> {
        let head = serde_json::to_vec(self).map_err(ToolError::internal)?;
        Ok(OutgoingMessage { kind: Self::KIND, head: head.into(), object: None })
    }

    fn from_message(message: &CallMessage) -> Result<Self, ToolError> {
        serde_json::from_slice(&message.body).map_err(ToolError::internal)
    }
}

macro_rules! message_bodies {
    ($($body:ty => $kind:expr,)*) => { $(impl MessageBody for $body { const KIND: u8 = $kind; })* };
}

message_bodies! {
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
pub(crate) fn bare(kind: u8) -> OutgoingMessage {
    OutgoingMessage { kind, head: Bytes::new(), object: None }
}

/// The outcome of a call; the result object as it is.
pub(crate) fn outcome_message(outcome: Result<JsonObject, ToolError>) -> Result<OutgoingMessage, ToolError> {
    match outcome {
        Ok(result) => Ok(OutgoingMessage { kind: kind::RESULT, head: Bytes::new(), object: Some(result) }),
        Err(error) => error.to_message(),
    }
}
