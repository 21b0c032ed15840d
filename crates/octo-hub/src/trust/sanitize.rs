//! Removes hidden text; everything else is preserved byte for byte.

use octo_model::{Json, JsonObject, Method, ToolError};
use octo_toolkit::hidden_text::{strip_hidden, strip_hidden_owned};

/// Members of a result for programs, which must be returned unchanged.
const OPAQUE_MEMBERS: [&str; 2] = ["_meta", "requestState"];

/// Bytes of a string that are sanitized at once.
const PIECE_BYTES: usize = 64 << 10;
/// Bytes of the longest escape: two halves of a code point.
const MAX_ESCAPE_BYTES: usize = 12;
/// Larger results are sanitized on a blocking thread.
const MAX_INLINE_BYTES: usize = 256 << 10;

/// Prefix of the hub's own `_meta` members.
const HUB_META_PREFIX: &str = "octoprox/";
pub(crate) const HIDDEN_REMOVED_META_KEY: &str = "octoprox/hidden_removed";

/// A definition without hidden text.
pub fn sanitize_definition(members: &JsonObject) -> JsonObject {
    sanitize_members(members).map_or_else(|_| JsonObject::new(), |(members, _)| members)
}

/// A result without hidden text, and a note if any was removed.
pub fn sanitize_result(method: Method, result: JsonObject) -> Result<(JsonObject, usize), ToolError> {
    let (mut result, removed) = sanitize_members(&strip_hub_meta(result, &[]))?;
    if removed == 0 {
        return Ok((result, 0));
    }
    let meta = result.object("_meta").with(HIDDEN_REMOVED_META_KEY, Json::of(&removed));
    result.set("_meta", meta);
    if method == Method::CallTool && result.get("content").is_some() {
        let notice = format!("[{removed} hidden characters were removed from this reply.]");
        let notice = JsonObject::new().with("type", "text").with("text", notice.as_str()).to_json();
        let blocks: Vec<Json> = result.list("content").into_iter().chain([notice]).collect();
        result.set("content", Json::array(&blocks));
    }
    Ok((result, removed))
}

/// The same off the runtime's threads if the result is large.
pub async fn sanitize_result_blocking(
    method: Method,
    result: JsonObject,
) -> Result<(JsonObject, usize), ToolError> {
    if result.size() <= MAX_INLINE_BYTES {
        return sanitize_result(method, result);
    }
    let sanitized = tokio::task::spawn_blocking(move || sanitize_result(method, result)).await;
    sanitized.unwrap_or_else(|error| Err(ToolError::internal(error)))
}

/// Removes members that only the hub may set, except those in `but`.
pub(crate) fn strip_hub_meta(mut result: JsonObject, but: &[&str]) -> JsonObject {
    let Some(Ok(mut meta)) = result.get("_meta").map(Json::members) else { return result };
    let ours = meta.iter().map(|(name, _)| name.to_owned());
    let ours: Vec<String> =
        ours.filter(|name| name.starts_with(HUB_META_PREFIX) && !but.contains(&name.as_str())).collect();
    if ours.is_empty() {
        return result;
    }
    for name in &ours {
        meta.remove(name);
    }
    result.set("_meta", meta);
    result
}

/// Messages of a server to a client; `None` if they cannot be sanitized.
pub fn sanitize_params(params: &JsonObject) -> Option<JsonObject> {
    sanitize_members(params).ok().map(|(clean, _)| clean)
}

/// Sanitizes the texts of an error, which come from the server.
pub fn sanitize_error(mut error: ToolError) -> ToolError {
    error.message = strip_hidden_owned(error.message.into_owned(), &mut 0).into();
    error.hint = error.hint.map(|hint| strip_hidden_owned(hint.into_owned(), &mut 0).into());
    if let Some(rpc) = &mut error.rpc {
        rpc.message = strip_hidden_owned(std::mem::take(&mut rpc.message), &mut 0);
        rpc.data = rpc.data.take().and_then(|data| match sanitize_json(&data) {
            Ok(Some((clean, _))) => Some(clean),
            Ok(None) => Some(data),
            Err(_) => None,
        });
    }
    error
}

fn sanitize_members(members: &JsonObject) -> Result<(JsonObject, usize), ToolError> {
    let mut all = members.clone();
    let mut removed = 0;
    for (key, value) in members.iter().filter(|(key, _)| !OPAQUE_MEMBERS.contains(key)) {
        if let Some((clean, count)) = sanitize_json(value)? {
            all.set(key, clean);
            removed += count;
        }
    }
    Ok((all, removed))
}

/// Sanitizes every string; `None` if there is nothing to remove.
fn sanitize_json(json: &Json) -> Result<Option<(Json, usize)>, ToolError> {
    let text = json.as_str();
    if !text.contains("\\u") && strip_hidden(text).removed == 0 {
        return Ok(None);
    }
    let (text, removed) = rewrite_strings(text);
    if removed == 0 {
        return Ok(None);
    }
    // Two names that differ only in hidden text would become one.
    let clean = Json::parse(text).map_err(|why| {
        ToolError::unavailable("The response has hidden text in member names.")
            .hint("Do not trust this server; inform the operator of the hub.")
            .detail(why)
    })?;
    Ok(Some((clean, removed)))
}

fn rewrite_strings(text: &str) -> (String, usize) {
    let (mut out, mut removed, mut rest) = (String::with_capacity(text.len()), 0, text);
    while let Some(open) = rest.find('"') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let (literal, after) = from.split_at(string_literal_end(from));
        let content = literal.get(1..literal.len() - 1).unwrap_or_default();
        out.push('"');
        for piece in pieces(content) {
            removed += push_clean(piece, &mut out);
        }
        out.push('"');
        rest = after;
    }
    out.push_str(rest);
    (out, removed)
}

/// Appends a piece of a string literal without hidden text; returns how many characters were removed.
fn push_clean(piece: &str, out: &mut String) -> usize {
    let decoded: Option<String> = serde_json::from_str(&format!("\"{piece}\"")).ok();
    match decoded.as_deref().map(strip_hidden).filter(|clean| clean.removed > 0) {
        Some(clean) => {
            let text = Json::text(&clean.text);
            out.push_str(text.as_str().get(1..text.as_str().len() - 1).unwrap_or_default());
            clean.removed
        }
        None => {
            out.push_str(piece);
            0
        }
    }
}

/// Pieces of a string literal, so that a large one is not in memory several times. None ends within an escape.
fn pieces(mut content: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if content.is_empty() {
            return None;
        }
        let bytes = content.as_bytes();
        let ends_here = |at: &usize| {
            let before = bytes.get(at.saturating_sub(MAX_ESCAPE_BYTES)..*at).unwrap_or_default();
            before.last().is_some_and(u8::is_ascii_alphanumeric) && !before.contains(&b'\\')
        };
        let end = (PIECE_BYTES..bytes.len()).find(ends_here).unwrap_or(bytes.len());
        let (piece, rest) = content.split_at(end);
        content = rest;
        Some(piece)
    })
}

/// End of the string literal at the start of `text`.
fn string_literal_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sanitized_text(text: &str) -> (String, usize) {
        let (members, removed) =
            sanitize_result(Method::CallTool, JsonObject::parse(text.to_owned()).unwrap()).unwrap();
        (members.to_json().to_string(), removed)
    }

    #[test]
    fn results_lose_hidden_text_and_nothing_else() {
        for text in [
            r#"{"content":[{"type":"text","text":"plain \u00e9 \"quoted\" \\"}],"vendor":1.50}"#,
            r#"{"content":[],"big":12345678901234567890.12,"flag":"👩‍💻"}"#,
            "{\"requestState\":\"a\u{200b}b\",\"_meta\":{\"x\":\"\u{200b}\"}}",
        ] {
            assert_eq!(sanitized_text(text), (text.to_owned(), 0));
        }
        let (clean, removed) = sanitized_text(
            "{\"content\":[{\"type\":\"text\",\"text\":\"a\u{e0041}b\\u001b[31mc\\\"\"}],\"n\":1.50,\"structuredContent\":{\"k\\u200b\":\"\\u202e\"}}",
        );
        assert_eq!(removed, 8);
        assert!(clean.starts_with(r#"{"content":[{"type":"text","text":"abc\""},{"type":"text","text":"[8 hidden characters were removed from this reply.]"}],"n":1.50,"structuredContent":{"k":""}"#), "{clean}");
        assert!(clean.ends_with(r#""_meta":{"octoprox/hidden_removed":8}}"#), "{clean}");
    }

    #[test]
    fn long_texts_are_sanitized_in_pieces() {
        let part = "a\u{200b}b \\u200b\\\\u200b \\ud83d\\ude00\\n é\u{e0041}".repeat(5_000);
        let (clean, removed) =
            sanitized_text(&format!(r#"{{"content":[{{"type":"text","text":"{part}"}}]}}"#));
        assert_eq!(removed, 15_000);
        assert!(!clean.contains('\u{200b}') && clean.contains(r"ab \\u200b"), "{}", &clean[..200]);
        let long = "x".repeat(200_000);
        let joined: String = pieces(&long).collect();
        assert!(joined == long && pieces(&long).all(|piece| piece.len() <= PIECE_BYTES));
    }

    #[test]
    fn names_that_become_one_are_refused() {
        let text = "{\"structuredContent\":{\"a\":1,\"a\u{200b}\":2}}";
        assert!(sanitize_result(Method::CallTool, JsonObject::parse(text.to_owned()).unwrap()).is_err());
    }

    #[test]
    fn errors_are_cleaned_too() {
        let rpc = octo_model::RpcError {
            code: 1,
            message: "b\u{200b}".into(),
            data: Some(Json::text("\u{feff}x")),
        };
        let clean = sanitize_error(ToolError::invalid("a\u{1b}[31m").hint("h\u{2066}").rpc(rpc));
        assert_eq!((clean.message.as_ref(), clean.hint.as_deref()), ("a", Some("h")));
        let rpc = clean.rpc.unwrap();
        assert_eq!((rpc.message.as_str(), rpc.data.unwrap().as_str()), ("b", "\"x\""));
    }
}
