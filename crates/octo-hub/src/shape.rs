//! Every reply is capped before it leaves the hub; what was left out can be read again.

use crate::audit::Record;
use crate::call::Request;
use crate::cut::fit;
use crate::hub::Hub;
use crate::item::Item;
use crate::policy::Permit;
use octo_model::{CallId, Json, Kind, Members, Method, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How large a reply may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShapeSettings {
    /// Bytes that one reply of a tool may have; the rest stays in the hub and is read with `result_read`.
    pub max_bytes: usize,
    /// Bytes that one resource or prompt may have. Half of a file is a broken file, so larger ones are refused whole and
    /// kept in the hub.
    pub max_resource_bytes: usize,
}

impl Default for ShapeSettings {
    fn default() -> Self {
        Self { max_bytes: 100_000, max_resource_bytes: 16 << 20 }
    }
}

pub(crate) const HANDLE_SCHEME: &str = "octoprox://results/";

impl Hub {
    pub(crate) async fn shape(
        &self,
        permit: &Permit<'_>,
        call: CallId,
        request: &Request,
        result: Members,
        record: &mut Record,
    ) -> Result<Members, ToolError> {
        let size: usize = result.iter().map(|(_, value)| value.bytes().len()).sum();
        let is_tool = request.op.method == Method::CallTool;
        let cap = if is_tool { self.shape.max_bytes } else { self.shape.max_resource_bytes };
        if size <= cap {
            return Ok(result);
        }
        let handle = self.spills.keep(&request.caller, call, result.to_json()).await?;
        record.spill(&handle);
        if !is_tool {
            return Err(kept_whole(size, cap, &handle));
        }
        cut(&permit.entry().item, &result, cap, &handle, size)
    }
}

fn kept_whole(size: usize, cap: usize, handle: &str) -> ToolError {
    ToolError::new(Kind::TooLarge, format!("This has {size} bytes; {cap} are allowed at once."))
        .hint(format!("Read it in parts with result_read and handle \"{handle}\", or raise `results.max_resource_bytes`."))
}

/// The result within the budget: structure cut within its schema, text cut, a notice in a block of its own.
fn cut(
    item: &Item,
    result: &Members,
    budget: usize,
    handle: &str,
    size: usize,
) -> Result<Members, ToolError> {
    let mut short = result.clone();
    let blocks = match result.get("structuredContent") {
        Some(structure) => {
            let structure = cut_structure(item, structure, budget / 2, handle)?;
            let text = Members::new().with("type", "text").with("text", structure.as_str());
            short.set("structuredContent", structure);
            vec![text.to_json()]
        }
        None => cut_blocks(&result.list("content"), budget),
    };
    let notice = format!(
        "[Cut: this reply had {size} bytes. Read the rest with result_read and handle \"{handle}\": by lines, bytes, a pattern or a jq expression.]"
    );
    let notice = Members::new().with("type", "text").with("text", notice.as_str());
    let link = Members::new()
        .with("type", "resource_link")
        .with("uri", format!("{HANDLE_SCHEME}{handle}").as_str())
        .with("name", handle)
        .with("description", "The whole reply")
        .with("mimeType", "application/json");
    let all: Vec<Json> = blocks.into_iter().chain([notice.to_json(), link.to_json()]).collect();
    short.set("content", Json::array(&all));
    let meta = result.object("_meta").with("octoprox/truncated", true).with("octoprox/result_handle", handle);
    short.set("_meta", meta);
    Ok(short)
}

fn cut_structure(item: &Item, structure: &Json, budget: usize, handle: &str) -> Result<Json, ToolError> {
    let mut value: Value = structure.to().map_err(ToolError::internal)?;
    fit(&mut value, budget);
    if let Value::Object(members) = &mut value {
        let mut said = members.clone();
        said.insert("truncated".to_owned(), Value::Bool(true));
        said.insert("result_handle".to_owned(), Value::from(handle));
        let said = Value::Object(said);
        if item.output().is_none_or(|checker| checker.validator.is_valid(&said)) {
            return Ok(Json::from(said));
        }
    }
    if item.output().is_none_or(|checker| checker.validator.is_valid(&value)) {
        return Ok(Json::from(value));
    }
    Err(ToolError::new(
        Kind::TooLarge,
        "The result is too large, and its schema leaves no room for cutting it.",
    )
    .hint(format!("It was kept: read it with result_read and handle \"{handle}\".")))
}

/// Text is cut; pictures and the like are left out whole when they do not fit.
fn cut_blocks(blocks: &[Json], budget: usize) -> Vec<Json> {
    let mut left = budget;
    let mut kept = Vec::new();
    for block in blocks {
        let size = block.bytes().len();
        if size <= left {
            left -= size;
            kept.push(block.clone());
            continue;
        }
        let Ok(members) = block.members() else { continue };
        if let Some(text) = members.text("text") {
            let mut text = Value::String(text);
            fit(&mut text, left);
            kept.push(members.with("text", Json::from(text)).to_json());
        }
        left = 0;
    }
    kept
}
