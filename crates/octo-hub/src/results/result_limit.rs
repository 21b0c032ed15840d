//! Result limit: every reply is truncated before it leaves the hub, and the whole is stored.

use crate::catalogue::item::Item;
use crate::pipeline::audit_record::AuditRecord;
use crate::pipeline::call_request::Request;
use crate::pipeline::compiled_schema::Validity;
use crate::pipeline::policy::Permit;
use crate::pipeline::validate::ArgumentValidator;
use crate::results::image_size;
use crate::results::truncate::truncate_value;
use octo_model::{CallId, Json, JsonObject, Kind, Method, ToolError};
use octo_ports::ResultStore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Maximum size of replies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResultLimits {
    /// Bytes of one tool reply, without images and the truncation notice. Text that repeats the structured
    /// content is not counted. Read the rest with `next` of the reply, or with `result_read`.
    pub max_bytes: usize,
    /// Bytes of one resource or prompt. A truncated file is a broken file, so larger ones are refused and
    /// stored in the hub.
    pub max_resource_bytes: usize,
}

impl Default for ResultLimits {
    fn default() -> Self {
        Self { max_bytes: 100_000, max_resource_bytes: 16 << 20 }
    }
}

pub(crate) const HANDLE_SCHEME: &str = "octoprox://results/";

/// Larger replies are assembled on a blocking thread.
const MAX_INLINE_BYTES: usize = 256 << 10;
/// Larger structured content is shown as text: parsed, it would need many times its size.
const MAX_STRUCTURE_BYTES: usize = 4 << 20;
const MAX_BLOCKS: usize = 1_000;
/// Maximum size of members that are preserved beside truncated ones.
const MAX_KEPT_MEMBER_BYTES: usize = 256;
/// Maximum bytes that the notice and the resource link add to the limit.
const MAX_NOTICE_BYTES: usize = 1_000;

/// Truncates replies and stores the whole.
pub struct ResultLimiter {
    pub limits: ResultLimits,
    pub store: Arc<dyn ResultStore>,
}

impl ResultLimiter {
    /// Returns the reply within its limit. The whole is stored for the caller.
    pub async fn limit(
        &self,
        validator: &ArgumentValidator,
        permit: &Permit<'_>,
        call: CallId,
        request: &Request,
        result: JsonObject,
        record: &mut AuditRecord,
    ) -> Result<JsonObject, ToolError> {
        let size = reply_size(&result);
        let is_tool = request.op.method == Method::CallTool;
        // No model reads it, and an app cannot read the rest.
        let is_for_app = request.from_app || !permit.entry().item.app.is_for_model;
        let cap = if is_tool && !is_for_app { self.limits.max_bytes } else { self.limits.max_resource_bytes };
        let cap = permit.obligations.max_result_bytes.map_or(cap, |most| most.min(cap));
        if size <= cap
            || (is_tool
                && content_size(&result, permit.entry().item.source.is_native()) <= cap + MAX_NOTICE_BYTES)
        {
            return Ok(result);
        }
        if result.text("resultType").as_deref() == Some("input_required") {
            return Err(ToolError::new(
                Kind::TooLarge,
                format!("The server's input request has {size} bytes."),
            )
            .hint(format!("The limit is {cap} bytes; raise `results.max_bytes`.")));
        }
        let (result, whole) = join_reply(result, size).await?;
        let handle = self.store.store(&request.caller, call, whole).await?;
        record.set_result_handle(&handle);
        if !is_tool {
            return Err(stored_whole_error(size, cap, &handle));
        }
        let item = Arc::clone(&permit.entry().item);
        validator.run_blocking(move || truncate_reply(&item, &result, cap, &handle, size)).await
    }
}

/// Size of the reply as text.
pub(crate) fn reply_size(result: &JsonObject) -> usize {
    let plain = |key: &str| !key.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\');
    let key_size = |key: &str| if plain(key) { key.len() + 2 } else { Json::text(key).bytes().len() };
    result.iter().map(|(key, value)| key_size(key) + value.bytes().len() + 2).sum::<usize>() + 1
}

/// Size of a tool reply, counting text that repeats the structured content once. Images of native tools have
/// their own limits.
fn content_size(result: &JsonObject, is_native: bool) -> usize {
    let structure = result.get("structuredContent").map_or(0, |structure| structure.bytes().len());
    let (mut texts, mut others) = (0, 0);
    let content = result.get("content").map_or("", Json::as_str);
    if !content.starts_with('[') {
        others = content.len();
    }
    for block in result.list("content") {
        match block.member("text") {
            // For native tools it is the same text with its quotes escaped.
            Some(text) if is_native && structure > 0 => texts += text.to_text().map_or(0, |text| text.len()),
            Some(_) if structure > 0 => texts += block.bytes().len() + 1,
            _ => others += block.bytes().len() + 1,
        }
    }
    if is_native {
        others = others.saturating_sub(image_size::uncounted_image_bytes(result));
    }
    let aside = result.iter().filter(|(key, _)| !["content", "structuredContent"].contains(key));
    structure.max(texts)
        + others
        + aside.map(|(key, value)| key.len() + value.bytes().len() + 4).sum::<usize>()
}

/// The reply and its text.
async fn join_reply(result: JsonObject, size: usize) -> Result<(JsonObject, Json), ToolError> {
    if size <= MAX_INLINE_BYTES {
        let whole = result.to_json();
        return Ok((result, whole));
    }
    let work = tokio::task::spawn_blocking(move || {
        let whole = result.to_json();
        // From here on there is only one copy.
        whole.members().map(|result| (result, whole)).map_err(ToolError::internal)
    });
    work.await.unwrap_or_else(|error| Err(ToolError::internal(error)))
}

fn stored_whole_error(size: usize, cap: usize, handle: &str) -> ToolError {
    ToolError::new(Kind::TooLarge, format!("The result has {size} bytes; the limit is {cap}.")).hint(format!(
        "Read it in parts with result_read and handle \"{handle}\", or raise `results.max_resource_bytes`."
    ))
}

/// Truncates the result to the budget and adds a notice as a separate block. Of truncated parts only known
/// members are preserved. If the parts exceed the budget together, each gets less; in the end only the notice
/// is left, or an error if the tool has an output schema.
fn truncate_reply(
    item: &Item,
    result: &JsonObject,
    budget: usize,
    handle: &str,
    size: usize,
) -> Result<JsonObject, ToolError> {
    for share in [1, 2, 4, 16] {
        let short = truncated_reply(item, result, budget / share, handle, size)?;
        if content_size(&short, false) <= budget + MAX_NOTICE_BYTES {
            return Ok(short);
        }
    }
    if has_schema(item, result) {
        return Err(untruncatable_error(handle));
    }
    Ok(with_notice(result, Vec::new(), handle, size))
}

/// Returns whether the tool declares an output schema that truncation could violate.
fn has_schema(item: &Item, result: &JsonObject) -> bool {
    item.members.get("outputSchema").is_some() && !result.is_true("isError")
}

fn truncated_reply(
    item: &Item,
    result: &JsonObject,
    budget: usize,
    handle: &str,
    size: usize,
) -> Result<JsonObject, ToolError> {
    let Some(structure) = result.get("structuredContent") else {
        return Ok(with_notice(result, truncate_blocks(&result.list("content"), budget), handle, size));
    };
    if structure.bytes().len() > MAX_STRUCTURE_BYTES {
        if has_schema(item, result) {
            return Err(untruncatable_error(handle));
        }
        let mut text = Value::from(char_prefix(structure.as_str(), budget));
        truncate_value(&mut text, budget);
        return Ok(with_notice(result, vec![text_block(Json::from(text))], handle, size));
    }
    let structure = truncate_structure(item, structure, budget, handle)?;
    let blocks = vec![text_block(Json::text(structure.as_str()))];
    Ok(with_notice(result, blocks, handle, size).with("structuredContent", structure))
}

fn char_prefix(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

fn text_block(text: Json) -> Json {
    JsonObject::new().with("type", "text").with("text", text).to_json()
}

fn with_notice(result: &JsonObject, blocks: Vec<Json>, handle: &str, size: usize) -> JsonObject {
    let notice = format!(
        "[Truncated: this reply had {size} bytes. Read the rest with result_read and handle \"{handle}\": by lines, bytes, a pattern or a jq expression.]"
    );
    let link = JsonObject::new()
        .with("type", "resource_link")
        .with("uri", format!("{HANDLE_SCHEME}{handle}").as_str())
        .with("name", handle)
        .with("description", "The whole reply")
        .with("mimeType", "application/json");
    let all: Vec<Json> =
        blocks.into_iter().chain([text_block(Json::text(&notice)), link.to_json()]).collect();
    let mut short = JsonObject::new().with("content", Json::array(&all));
    for known in ["isError", "resultType"] {
        if let Some(value) = result.get(known).filter(|value| value.bytes().len() <= MAX_KEPT_MEMBER_BYTES) {
            short.set(known, value.clone());
        }
    }
    let meta = result.get("_meta").filter(|meta| meta.bytes().len() <= MAX_KEPT_MEMBER_BYTES);
    let meta = meta.and_then(|meta| meta.members().ok()).unwrap_or_default();
    short.with("_meta", meta.with("octoprox/truncated", true).with("octoprox/result_handle", handle))
}

fn untruncatable_error(handle: &str) -> ToolError {
    ToolError::new(Kind::TooLarge, "The result is too large, and its schema does not permit truncation.")
        .hint(format!("It was stored: read it with result_read and handle \"{handle}\"."))
}

fn truncate_structure(item: &Item, structure: &Json, budget: usize, handle: &str) -> Result<Json, ToolError> {
    let mut value: Value = structure.to().map_err(ToolError::internal)?;
    let lengths = array_lengths(&value);
    truncate_value(&mut value, budget);
    if item.source.is_native() {
        update_count(&mut value, &lengths);
    }
    let fits = |value: &Value| {
        item.output().is_none_or(|checker| checker.check(value, || item.target()) != Validity::Invalid)
    };
    if let Value::Object(members) = &mut value {
        // Following it would skip what was truncated here.
        let next = members.remove("next");
        let mut said = members.clone();
        said.insert("truncated".to_owned(), Value::Bool(true));
        said.insert("result_handle".to_owned(), Value::from(handle));
        let said = Value::Object(said);
        if fits(&said) {
            return Ok(Json::from(said));
        }
        members.extend(next.map(|next| ("next".to_owned(), next)));
    }
    if fits(&value) { Ok(Json::from(value)) } else { Err(untruncatable_error(handle)) }
}

/// Lengths of the arrays in a structure.
fn array_lengths(value: &Value) -> Vec<usize> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(_, member)| member.as_array().map_or(0, Vec::len)).collect()
}

/// In native tools `count` is the number of items in the reply.
fn update_count(value: &mut Value, before: &[usize]) {
    let now = array_lengths(value);
    let Some(count) = value.get_mut("count") else { return };
    let changed = before.iter().zip(now).find(|(before, now)| *before != now && *count == **before);
    if let Some((_, now)) = changed {
        *count = Value::from(now);
    }
}

/// Truncates text; omits images and other blocks that do not fit.
fn truncate_blocks(blocks: &[Json], budget: usize) -> Vec<Json> {
    let mut left = budget;
    let mut kept = Vec::new();
    for block in blocks.iter().take(MAX_BLOCKS) {
        let size = block.bytes().len() + 1;
        if size <= left {
            left -= size;
            kept.push(block.clone());
            continue;
        }
        let Ok(members) = block.members() else { break };
        if let Some(text) = members.get("text").and_then(|text| truncate_text(text, left)) {
            kept.push(text_block(text));
        }
        break;
    }
    kept
}

/// The start of a text, without parsing all of a long one.
fn truncate_text(text: &Json, budget: usize) -> Option<Json> {
    let raw = text.as_str().strip_prefix('"')?;
    if raw.len() <= MAX_STRUCTURE_BYTES {
        let mut text = Value::String(text.to_text()?);
        truncate_value(&mut text, budget);
        return Some(Json::from(text));
    }
    // A truncated escape sequence is dropped.
    let part = char_prefix(raw, budget.min(MAX_STRUCTURE_BYTES));
    let ends = (0..12).filter_map(|less| part.get(..part.len().checked_sub(less)?));
    let mut text = ends.into_iter().find_map(|part| serde_json::from_str(&format!("\"{part}\"")).ok())?;
    truncate_value(&mut text, budget);
    Some(Json::from(text))
}
