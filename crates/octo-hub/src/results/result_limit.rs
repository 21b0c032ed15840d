//! Result limit: every reply is truncated before it leaves the hub, and the whole is stored.

use crate::catalogue::item::Item;
use crate::pipeline::audit_record::AuditRecord;
use crate::pipeline::call_request::Request;
use crate::pipeline::compiled_schema::Validity;
use crate::pipeline::policy::Permit;
use crate::pipeline::validate::ArgumentValidator;
use crate::results::image_size;
use crate::results::json_shape::json_shape;
use crate::results::preview_text::preview_text;
use crate::results::repeated_structure::repeats_structure;
use crate::results::truncate::truncate_value;
use crate::results::truncate_text::{is_position, truncate_model_text};
use octo_grants::jq::MAX_INPUT_BYTES;
use octo_model::{Json, JsonObject, Kind, Method, ToolError};
use octo_ports::{OWN_TEXT_META_KEY, ResultStore};
use octo_toolkit::counted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Maximum size of replies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResultLimits {
    /// Bytes of one tool reply to an MCP client that does not ask for more, without images and the truncation
    /// notice. Text that repeats the structured content is not counted. Read the rest with `result_read`.
    pub inline_bytes: usize,
    /// The same for tools that read a text, such as a file or a page.
    pub read_bytes: usize,
    /// Bytes of one tool reply to REST clients, workflows and the command line, and to MCP clients that ask
    /// for more: with a parameter such as `max_bytes`, or with `octoprox/max_bytes` in `_meta` of the request.
    pub max_bytes: usize,
    /// Bytes of one resource or prompt. A truncated file is a broken file, so larger ones are refused and
    /// stored in the hub.
    pub max_resource_bytes: usize,
}

impl Default for ResultLimits {
    fn default() -> Self {
        Self { inline_bytes: 8_000, read_bytes: 24_000, max_bytes: 100_000, max_resource_bytes: 16 << 20 }
    }
}

/// The `_meta` member with the handle of a truncated result.
pub(crate) const HANDLE_META_KEY: &str = "octoprox/result_handle";
pub(crate) const HANDLE_SCHEME: &str = "octoprox://results/";

/// Larger replies are assembled on a blocking thread.
const MAX_INLINE_BYTES: usize = 256 << 10;
/// Larger structured content is shown as text: parsed, it would need many times its size.
const MAX_STRUCTURE_BYTES: usize = 4 << 20;
const MAX_BLOCKS: usize = 1_000;
/// Larger replies are stored one after the other.
const MAX_CONCURRENT_BYTES: usize = 4 << 20;
/// Maximum size of members that are preserved beside truncated ones.
const MAX_KEPT_MEMBER_BYTES: usize = 256;
/// Maximum bytes that the notice and the resource link add to the limit.
const MAX_NOTICE_BYTES: usize = 1_600;
/// Maximum bytes of the description of its JSON in the notice.
const MAX_SHAPE_BYTES: usize = 400;

/// Truncates replies and stores the whole.
pub struct ResultLimiter {
    pub limits: ResultLimits,
    pub store: Arc<dyn ResultStore>,
    /// Replies that take much memory are stored one at a time.
    storing: Semaphore,
}

impl ResultLimiter {
    pub fn new(limits: ResultLimits, store: Arc<dyn ResultStore>) -> Self {
        Self { limits, store, storing: Semaphore::new(1) }
    }

    /// Returns the reply within its limit. The whole is stored for the caller.
    pub async fn limit(
        &self,
        validator: &ArgumentValidator,
        permit: &Permit<'_>,
        request: &Request,
        result: JsonObject,
        cap: usize,
        record: &mut AuditRecord,
    ) -> Result<JsonObject, ToolError> {
        let size = reply_size(&result);
        let is_tool = request.op.method == Method::CallTool;
        if size <= cap {
            return Ok(result);
        }
        let item = Arc::clone(&permit.entry().item);
        let (result, has_own_text) = find_own_text(result, item.source.is_native(), size).await?;
        if is_tool && content_size(&result, item.source.is_native(), has_own_text) <= cap + MAX_NOTICE_BYTES {
            return Ok(result);
        }
        if result.text("resultType").as_deref() == Some("input_required") {
            return Err(ToolError::new(
                Kind::TooLarge,
                format!("The server's input request has {size} bytes."),
            )
            .hint(format!("The limit is {cap} bytes; raise `results.max_bytes`.")));
        }
        let _turn = match size {
            ..=MAX_CONCURRENT_BYTES => None,
            _ => Some(self.storing.acquire().await.map_err(ToolError::internal)?),
        };
        let (result, whole) = join_reply(result, size, has_own_text).await?;
        let stored = self.store.store(&request.caller, record.id, whole).await;
        let handle = stored.map_err(|error| not_stored_error(error.into()))?;
        record.set_result_handle(&handle);
        if !is_tool {
            return Err(stored_whole_error(size, cap, &handle));
        }
        if request.depth > 0 {
            // Nested calls load the whole.
            let meta = JsonObject::new().with(HANDLE_META_KEY, handle.as_str());
            return Ok(JsonObject::new().with("_meta", meta).with("isError", result.is_true("isError")));
        }
        let who = &request.caller.principal;
        let truncate = move || {
            LargeReply { item: &item, result: &result, has_own_text, handle: &handle, size }.truncate(cap)
        };
        validator.run_blocking(who, truncate).await
    }
}

/// Whether a result is truncated, and the whole is stored.
pub(crate) fn is_stored(result: &JsonObject) -> bool {
    result.inner("_meta", HANDLE_META_KEY).is_some()
}

/// The call has run, so the caller is not asked to repeat it.
fn not_stored_error(error: ToolError) -> ToolError {
    let message = format!("The call was made, but its result was not stored. {}", error.message);
    ToolError { message: message.into(), ..error }
        .hint("Check its effect before you repeat it, and request less data at once.")
        .with_unknown_outcome()
}

/// Size of the reply as text.
pub(crate) fn reply_size(result: &JsonObject) -> usize {
    let plain = |key: &str| !key.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\');
    let key_size = |key: &str| if plain(key) { key.len() + 2 } else { Json::text(key).bytes().len() };
    result.iter().map(|(key, value)| key_size(key) + value.bytes().len() + 2).sum::<usize>() + 1
}

/// Whether a reply has text that is not its structured content. That of native tools is made from the structure.
async fn find_own_text(
    result: JsonObject,
    is_native: bool,
    size: usize,
) -> Result<(JsonObject, bool), ToolError> {
    let Some(structure) = result.get("structuredContent").filter(|_| !is_native).cloned() else {
        return Ok((result, false));
    };
    let content = result.list("content");
    let find = move || !repeats_structure(&content, &structure);
    if size <= MAX_INLINE_BYTES {
        return Ok((result, find()));
    }
    let found = tokio::task::spawn_blocking(find).await.map_err(ToolError::internal)?;
    Ok((result, found))
}

/// Size of a tool reply, counting text that repeats the structured content once. Images have their own limits.
fn content_size(result: &JsonObject, is_native: bool, has_own_text: bool) -> usize {
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
            Some(_) if structure > 0 && !has_own_text => texts += block.bytes().len() + 1,
            _ => others += block.bytes().len() + 1,
        }
    }
    others = others.saturating_sub(image_size::uncounted_image_bytes(result));
    let aside = result.iter().filter(|(key, _)| !["content", "structuredContent"].contains(key));
    structure.max(texts)
        + others
        + aside.map(|(key, value)| key.len() + value.bytes().len() + 4).sum::<usize>()
}

/// The reply and its text.
async fn join_reply(
    mut result: JsonObject,
    size: usize,
    has_own_text: bool,
) -> Result<(JsonObject, Json), ToolError> {
    if has_own_text {
        let meta = result.object("_meta").with(OWN_TEXT_META_KEY, true);
        result.set("_meta", meta);
    }
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

/// A reply that is larger than its limit, and stored.
struct LargeReply<'a> {
    item: &'a Item,
    result: &'a JsonObject,
    has_own_text: bool,
    handle: &'a str,
    size: usize,
}

impl LargeReply<'_> {
    /// Truncates the result to the budget and adds a notice as a separate block. Of truncated parts only known
    /// members are preserved. If the parts exceed the budget together, each gets less; in the end only the notice
    /// is left, or an error if the tool has an output schema.
    fn truncate(&self, budget: usize) -> Result<JsonObject, ToolError> {
        for share in [1, 2, 4, 16] {
            let short = self.within(budget / share)?;
            if content_size(&short, false, self.has_own_text) <= budget + MAX_NOTICE_BYTES {
                return Ok(short);
            }
        }
        if self.has_schema() {
            return Err(untruncatable_error(self.result, self.handle));
        }
        Ok(self.with_notice(Vec::new()))
    }

    /// Returns whether the tool declares an output schema that truncation could violate.
    fn has_schema(&self) -> bool {
        self.item.members.get("outputSchema").is_some() && !self.result.is_true("isError")
    }

    /// The result with each of its parts within the budget.
    fn within(&self, budget: usize) -> Result<JsonObject, ToolError> {
        let blocks = self.result.list("content");
        let keeps_images = image_size::uncounted_image_bytes(self.result) > 0;
        let Some(structure) = self.result.get("structuredContent") else {
            return Ok(self.with_notice(truncate_blocks(&blocks, budget, keeps_images)));
        };
        let with_images = |text: Option<Json>| {
            let images = blocks.iter().filter(|block| keeps_images && image_size::is_image(block));
            text.map(text_block).into_iter().chain(images.cloned()).collect::<Vec<Json>>()
        };
        if structure.bytes().len() > MAX_STRUCTURE_BYTES {
            if self.has_schema() {
                return Err(untruncatable_error(self.result, self.handle));
            }
            if self.has_own_text {
                return Ok(self.with_notice(truncate_blocks(&blocks, budget, keeps_images)));
            }
            let text = preview_text(&Json::text(structure.as_str()), budget);
            return Ok(self.with_notice(with_images(text)));
        }
        let is_native = self.item.source.is_native();
        let shown = if is_native { truncate_model_text(self.result, structure, budget) } else { None };
        let is_error = self.result.is_true("isError");
        let structure = truncate_structure(self.item, structure, budget, self.handle, is_error)?
            .ok_or_else(|| untruncatable_error(self.result, self.handle))?;
        let shown = if self.has_own_text {
            truncate_blocks(&blocks, budget, keeps_images)
        } else {
            with_images(Some(shown.unwrap_or_else(|| Json::text(structure.as_str()))))
        };
        Ok(self.with_notice(shown).with("structuredContent", structure))
    }

    fn with_notice(&self, blocks: Vec<Json>) -> JsonObject {
        let Self { result, handle, size, .. } = *self;
        let shape = shape_sentence(result);
        let notice = format!(
            "[Truncated: this reply had {size} bytes.{shape} Read the rest with result_read and handle \"{handle}\": by lines, bytes, a pattern or a jq expression.]"
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
            let value = result.get(known).filter(|value| value.bytes().len() <= MAX_KEPT_MEMBER_BYTES);
            if let Some(value) = value {
                short.set(known, value.clone());
            }
        }
        let meta = result.get("_meta").filter(|meta| meta.bytes().len() <= MAX_KEPT_MEMBER_BYTES);
        let mut meta = meta.and_then(|meta| meta.members().ok()).unwrap_or_default();
        meta.remove(OWN_TEXT_META_KEY);
        // A part of the reply would keep all of it in memory.
        short.with("_meta", meta.with("octoprox/truncated", true).with(HANDLE_META_KEY, handle)).detached()
    }
}

fn text_block(text: Json) -> Json {
    JsonObject::new().with("type", "text").with("text", text).to_json()
}

fn shape_sentence(result: &JsonObject) -> String {
    reply_shape(result).map(|shape| format!(" Its JSON is {shape}.")).unwrap_or_default()
}

/// The shape of what a jq expression gets.
fn reply_shape(result: &JsonObject) -> Option<String> {
    if let Some(structure) = result.get("structuredContent") {
        let is_readable = structure.bytes().len() <= MAX_INPUT_BYTES;
        return is_readable.then(|| json_shape(structure.as_str(), MAX_SHAPE_BYTES)).flatten();
    }
    let [block] = result.list("content").try_into().ok()?;
    let text = Json::member(&block, "text")?;
    // Other texts need not be parsed, nor those that jq does not read.
    let is_readable = text.as_str().starts_with(r#""{"#) || text.as_str().starts_with(r#""["#);
    if !is_readable || text.bytes().len() > MAX_INPUT_BYTES {
        return None;
    }
    json_shape(&text.to_text()?, MAX_SHAPE_BYTES)
}

fn untruncatable_error(result: &JsonObject, handle: &str) -> ToolError {
    let shape = shape_sentence(result);
    let message = format!("The result is too large, and its schema does not permit truncation.{shape}");
    ToolError::new(Kind::TooLarge, message).hint(format!(
        "It was stored: read it with result_read and handle \"{handle}\", such as by a jq expression."
    ))
}

/// `None` if no truncated structure fits the schema, which that of an error need not.
fn truncate_structure(
    item: &Item,
    structure: &Json,
    budget: usize,
    handle: &str,
    is_error: bool,
) -> Result<Option<Json>, ToolError> {
    let mut value: Value = structure.to().map_err(ToolError::internal)?;
    let is_native = item.source.is_native();
    let lengths = array_lengths(&value);
    truncate_value(&mut value, budget);
    if is_native {
        update_counts(&mut value, &lengths);
    }
    let fits = |value: &Value| {
        is_error
            || item.output().is_none_or(|checker| checker.check(value, || item.target()) != Validity::Invalid)
    };
    let Some(members) = value.as_object_mut() else { return Ok(fits(&value).then(|| Json::from(value))) };
    let whole = members.clone();
    // Following it would skip what was truncated here.
    members.retain(|key, _| !is_position(key, is_native));
    let mut marked = members.clone();
    marked.insert("truncated".to_owned(), Value::Bool(true));
    marked.insert("result_handle".to_owned(), Value::from(handle));
    let candidates = [Value::Object(marked), value, Value::Object(whole)];
    Ok(candidates.into_iter().find(fits).map(Json::from))
}

/// Lengths of the arrays in a structure.
fn array_lengths(value: &Value) -> Vec<usize> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(_, member)| member.as_array().map_or(0, Vec::len)).collect()
}

/// In native tools `count` and `row_count` are numbers of items in the reply.
fn update_counts(value: &mut Value, before: &[usize]) {
    let now = array_lengths(value);
    let shortened: Vec<(usize, usize)> =
        before.iter().copied().zip(now).filter(|(before, now)| before != now).collect();
    for key in ["count", "row_count"] {
        let Some(count) = value.get_mut(key) else { continue };
        if let Some((_, now)) = shortened.iter().find(|(before, _)| *count == *before) {
            *count = Value::from(*now);
        }
    }
}

/// Truncates text; omits other blocks that do not fit, but for images if they are not counted.
fn truncate_blocks(blocks: &[Json], budget: usize, keeps_images: bool) -> Vec<Json> {
    let mut left = budget;
    let mut omitted = blocks.len().saturating_sub(MAX_BLOCKS);
    let mut kept = Vec::new();
    for block in blocks.iter().take(MAX_BLOCKS) {
        let size = block.bytes().len() + 1;
        if keeps_images && image_size::is_image(block) {
            kept.push(block.clone());
        } else if size <= left {
            left -= size;
            kept.push(block.clone());
        } else if let Some(text) = block.member("text").filter(|_| left > 0) {
            kept.extend(preview_text(&text, left).map(text_block));
            left = 0;
        } else {
            omitted += 1;
        }
    }
    if omitted > 0 {
        let mark = format!("[… {} left out …]", counted(omitted, "content block", "content blocks"));
        kept.push(text_block(Json::text(&mark)));
    }
    kept
}
