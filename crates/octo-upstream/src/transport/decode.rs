//! Decodes messages from a server. Salvages lists with invalid entries.

use bytes::Bytes;
use octo_model::{ItemKind, Json, JsonError, JsonObject};
use octo_wire::{Id, Incoming, Message, Strictness};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Text that is not a message, with the id of the request it responds to, if visible.
#[derive(Debug)]
pub(crate) struct DecodeError {
    pub(crate) id: Option<u64>,
    pub(crate) fault: JsonError,
}

/// Larger messages are decoded on a blocking thread.
const MAX_INLINE_BYTES: usize = 256 << 10;
/// Maximum entries of a list in a result: each takes many times its text once it is split.
const MAX_LIST_ENTRIES: usize = 100_000;
/// Text around a message that is kept with it.
const MAX_EXCESS_BYTES: usize = 64 << 10;

/// Decodes the messages in one frame, off the runtime's threads if it is large.
pub(crate) async fn decode_message(text: Bytes) -> Result<Vec<Message>, DecodeError> {
    if text.len() <= MAX_INLINE_BYTES {
        return decode(text);
    }
    let decoded = tokio::task::spawn_blocking(move || decode_large(text)).await;
    let failed = || DecodeError { id: None, fault: JsonError("the message could not be decoded") };
    decoded.unwrap_or_else(|_| Err(failed()))
}

fn decode_large(text: Bytes) -> Result<Vec<Message>, DecodeError> {
    let size = text.len();
    let mut messages = decode(text)?;
    for message in &mut messages {
        let (id, body) = match message {
            Message::Response { id, result } => (id.to_number(), result),
            Message::Request { params, .. } | Message::Notification { params, .. } => (None, params),
            Message::Error { .. } => continue,
        };
        if body.iter().any(|(_, member)| has_too_many_entries(member)) {
            let fault = JsonError("a list in the result has too many entries");
            return Err(DecodeError { id, fault });
        }
        // Otherwise a small part would keep all of the text.
        if size > body.size() + MAX_EXCESS_BYTES {
            *body = body.detached();
        }
    }
    Ok(messages)
}

fn has_too_many_entries(member: &Json) -> bool {
    let entries = member.bytes().len() / 2 > MAX_LIST_ENTRIES;
    entries && member.elements_up_to(MAX_LIST_ENTRIES + 1).is_ok_and(|all| all.len() > MAX_LIST_ENTRIES)
}

/// Decodes the messages in one frame.
pub(crate) fn decode(text: Bytes) -> Result<Vec<Message>, DecodeError> {
    // Text that is no JSON at all can be plentiful; it is not worth a parser.
    if !matches!(text.trim_ascii_start().first(), Some(b'{' | b'[')) {
        return Err(DecodeError { id: None, fault: JsonError("a message must be an object") });
    }
    match Incoming::parse(text.clone(), Strictness::Upstream) {
        Ok(Incoming::One(message)) => Ok(vec![message]),
        Ok(Incoming::Batch(messages)) => Ok(messages),
        Err(fault) => salvage(&text, fault).map(|message| vec![message]),
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// One invalid entry must not cost a whole list: keeps the valid entries.
fn salvage(text: &[u8], fault: JsonError) -> Result<Message, DecodeError> {
    let Ok(envelope) = serde_json::from_slice::<Envelope>(text) else {
        return Err(DecodeError { id: None, fault });
    };
    let broken = DecodeError { id: envelope.id, fault };
    let Some(id) = envelope.id else { return Err(broken) };
    match envelope.result.and_then(salvage_list) {
        Some(result) => {
            tracing::warn!(target: "upstream", %fault, "skipped invalid entries of a list");
            Ok(Message::Response { id: Id::number(id), result })
        }
        None => Err(broken),
    }
}

fn salvage_list(result: &RawValue) -> Option<JsonObject> {
    let parts: BTreeMap<String, &RawValue> = serde_json::from_str(result.get()).ok()?;
    if !ItemKind::ALL.iter().any(|kind| parts.contains_key(kind.list_member())) {
        return None;
    }
    Some(parts.into_iter().filter_map(|(key, part)| salvage_entries(part).map(|json| (key, json))).collect())
}

fn salvage_entries(part: &RawValue) -> Option<Json> {
    if let Ok(whole) = parse_strict(part) {
        return Some(whole);
    }
    let entries: Vec<&RawValue> = serde_json::from_str(part.get()).ok()?;
    let good: Vec<Json> = entries.into_iter().filter_map(|entry| parse_strict(entry).ok()).collect();
    Some(Json::array(&good))
}

fn parse_strict(part: &RawValue) -> Result<Json, JsonError> {
    Json::parse(part.get().as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn one_bad_tool_does_not_cost_the_list() {
        let mut messages = decode(text(
            r#"{"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"a"},{"name":"b","name":"c"},{"name":"d"}],"nextCursor":"x"}}"#,
        ))
        .unwrap();
        let Some(Message::Response { id, result }) = messages.pop() else { panic!() };
        assert_eq!(id.to_number(), Some(4));
        assert_eq!(result.get("tools").unwrap().as_str(), r#"[{"name":"a"},{"name":"d"}]"#);
        assert_eq!(result.text("nextCursor").as_deref(), Some("x"));
    }

    #[test]
    fn a_broken_answer_is_known_by_its_id() {
        let broken =
            decode(text(r#"{"jsonrpc":"2.0","id":9,"result":{"content":[],"a":1,"a":2}}"#)).unwrap_err();
        assert_eq!(broken.id, Some(9));
        assert_eq!(decode(text(r#"{"jsonrpc":"2.0","id":9,"result":3}"#)).unwrap_err().id, Some(9));
        assert_eq!(decode(text("Listening on port 80")).unwrap_err().id, None);
    }

    #[tokio::test]
    async fn a_small_message_does_not_keep_a_large_text_and_long_lists_are_refused() {
        let padded = format!(r#"{{"jsonrpc":"2.0","id":1,{}"result":{{"a":1}}}}"#, " ".repeat(1 << 20));
        let text = Bytes::from(padded);
        let whole = text.as_ptr_range();
        let messages = decode_message(text.clone()).await.unwrap();
        let [Message::Response { result, .. }] = messages.as_slice() else { panic!("{messages:?}") };
        assert!(!whole.contains(&result.get("a").unwrap().bytes().as_ptr()));
        let long =
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[{}0]}}}}"#, "0,".repeat(1 << 20));
        assert_eq!(decode_message(Bytes::from(long)).await.unwrap_err().id, Some(7));
    }

    #[test]
    fn batches_come_apart() {
        let found =
            decode(text(r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"x"}]"#)).unwrap();
        assert_eq!(found.len(), 2);
    }
}
