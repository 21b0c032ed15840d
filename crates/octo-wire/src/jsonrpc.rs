//! JSON-RPC envelopes.

use crate::Id;
use bytes::Bytes;
use octo_model::{Json, JsonError, JsonObject, RpcError};

/// One message. Params and results are objects whose members stay as text.
#[derive(Debug, Clone)]
pub enum Message {
    Request { id: Id, method: String, params: JsonObject },
    Notification { method: String, params: JsonObject },
    Response { id: Id, result: JsonObject },
    Error { id: Option<Id>, error: RpcError },
}

/// Content of one frame; batches exist in 2025-03-26 only.
#[derive(Debug)]
pub enum Incoming {
    One(Message),
    Batch(Vec<Message>),
}

/// Unknown members of the envelope are rejected from clients and ignored from upstreams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    Client,
    Upstream,
}

/// Maximum messages in a batch of a client.
const MAX_BATCH: usize = 50;
/// Maximum messages in a batch of an upstream.
const MAX_UPSTREAM_BATCH: usize = 10_000;

const ENVELOPE_KEYS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

impl Incoming {
    pub fn parse(text: Bytes, strictness: Strictness) -> Result<Self, JsonError> {
        let json = Json::parse(text)?;
        if json.is_object() {
            return Message::from_json(&json, strictness).map(Self::One);
        }
        let (most, too_many) = match strictness {
            Strictness::Client => {
                (MAX_BATCH, "a batch has at most 50 messages; send the others in another one")
            }
            _ => (MAX_UPSTREAM_BATCH, "a batch has at most 10,000 messages"),
        };
        let parts = json
            .elements_up_to(most.saturating_add(1))
            .map_err(|_| JsonError("a JSON-RPC message must be an object"))?;
        if parts.len() > most {
            return Err(JsonError(too_many));
        }
        if parts.is_empty() {
            return Err(JsonError("a batch has at least one message"));
        }
        parts
            .iter()
            .map(|part| Message::from_json(part, strictness))
            .collect::<Result<_, _>>()
            .map(Self::Batch)
    }
}

impl Message {
    /// Parses one message that is not a batch.
    pub fn parse(text: Bytes, strictness: Strictness) -> Result<Self, JsonError> {
        Self::from_json(&Json::parse(text)?, strictness)
    }

    fn from_json(json: &Json, strictness: Strictness) -> Result<Self, JsonError> {
        let mut envelope = json.members()?;
        if strictness == Strictness::Client {
            check_strict(&envelope)?;
        }
        let id = match envelope.remove("id") {
            None => None,
            Some(id) if id.is_null() && envelope.get("error").is_some() => None,
            Some(id) => Some(Id::from_json(id).ok_or(JsonError("an id must be a number or a string"))?),
        };
        if let Some(method) = envelope.remove("method") {
            let method = method.to_text().ok_or(JsonError("a method must be a string"))?;
            let params = match envelope.remove("params") {
                None => JsonObject::new(),
                Some(params) if params.is_null() && strictness == Strictness::Upstream => JsonObject::new(),
                Some(params) => params.members().map_err(|_| JsonError("params must be an object"))?,
            };
            return Ok(match id {
                Some(id) => Self::Request { id, method, params },
                None => Self::Notification { method, params },
            });
        }
        if let Some(error) = envelope.remove("error") {
            return Ok(Self::Error { id, error: rpc_error(&error)? });
        }
        let result =
            envelope.remove("result").ok_or(JsonError("a message has a method, a result or an error"))?;
        let id = id.ok_or(JsonError("a response needs an id"))?;
        Ok(Self::Response {
            id,
            result: result.members().map_err(|_| JsonError("a result must be an object"))?,
        })
    }

    /// Encodes the message as one line of text.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Request { id, method, params } => {
                envelope(Some(id.json()), Some(method), Some(("params", params)))
            }
            Self::Notification { method, params } => {
                envelope(None, Some(method), (!params.is_empty()).then_some(("params", params)))
            }
            Self::Response { id, result } => envelope(Some(id.json()), None, Some(("result", result))),
            Self::Error { id, error } => {
                let id = id.as_ref().map_or_else(Json::null, |id| id.json().clone());
                envelope(Some(&id), None, Some(("error", &error_members(error))))
            }
        }
    }
}

/// Written by hand so that a large body is copied once.
fn envelope(id: Option<&Json>, method: Option<&String>, body: Option<(&str, &JsonObject)>) -> Bytes {
    let size = body.map_or(0, |(_, body)| body.size());
    let mut text = Vec::with_capacity(size + 128);
    text.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    if let Some(id) = id {
        text.extend_from_slice(br#","id":"#);
        text.extend_from_slice(id.bytes());
    }
    if let Some(method) = method {
        text.extend_from_slice(br#","method":"#);
        text.extend_from_slice(Json::text(method).bytes());
    }
    if let Some((key, body)) = body {
        text.extend_from_slice(b",\"");
        text.extend_from_slice(key.as_bytes());
        text.extend_from_slice(b"\":");
        body.write(&mut text);
    }
    text.push(b'}');
    one_line(text)
}

/// Line breaks can only occur between tokens, where a space is equivalent.
fn one_line(mut text: Vec<u8>) -> Bytes {
    let mut from = 0;
    while let Some(rest) = text.get_mut(from..)
        && let Some(at) = memchr::memchr2(b'\n', b'\r', rest)
    {
        if let Some(found) = rest.get_mut(at) {
            *found = b' ';
        }
        from += at + 1;
    }
    text.into()
}

fn check_strict(envelope: &JsonObject) -> Result<(), JsonError> {
    if envelope.iter().any(|(key, _)| !ENVELOPE_KEYS.contains(&key)) {
        return Err(JsonError("the message has an unknown member"));
    }
    if envelope.get("jsonrpc").is_none_or(|version| version.bytes().as_ref() != br#""2.0""#) {
        return Err(JsonError("jsonrpc must be \"2.0\""));
    }
    let bodies = ["method", "result", "error"].iter().filter(|key| envelope.get(key).is_some()).count();
    if bodies != 1 {
        return Err(JsonError("a message has exactly one of method, result and error"));
    }
    Ok(())
}

fn rpc_error(error: &Json) -> Result<RpcError, JsonError> {
    let error = error.members().map_err(|_| JsonError("an error must be an object"))?;
    let code =
        error.get("code").and_then(|code| code.to::<i64>().ok()).ok_or(JsonError("an error needs a code"))?;
    Ok(RpcError {
        code,
        message: error.text("message").unwrap_or_default(),
        data: error.get("data").cloned(),
    })
}

fn error_members(error: &RpcError) -> JsonObject {
    let mut members =
        JsonObject::new().with("code", Json::of(&error.code)).with("message", error.message.as_str());
    if let Some(data) = &error.data {
        members.set("data", data.clone());
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &'static str) -> Result<Incoming, JsonError> {
        Incoming::parse(Bytes::from_static(text.as_bytes()), Strictness::Client)
    }

    #[test]
    fn refuses_envelopes_that_two_readers_could_read_differently() {
        for text in [
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            "[]",
            "3",
        ] {
            assert!(client(text).is_err(), "{text}");
        }
        assert!(client(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).is_ok());
    }

    #[test]
    fn writes_what_it_read() {
        for text in [
            r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":[1.50],"_meta":{"v/w":1}}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[],"vendor":{"a":12345678901234567890}}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no","data":{"a":1}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        ] {
            let Ok(Incoming::One(message)) = client(text) else { panic!("{text}") };
            assert_eq!(message.to_bytes(), text.as_bytes());
        }
    }

    #[test]
    fn a_pretty_message_becomes_one_line() {
        let text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":[\n1,\r\n2]}}";
        let message = Message::parse(Bytes::from_static(text.as_bytes()), Strictness::Upstream).unwrap();
        assert!(!message.to_bytes().contains(&b'\n'));
    }
}
