//! Text output of results.

use crate::terminal::text_table::sanitize_text;
use octo_model::{Json, JsonObject};
use serde_json::Value;

/// Renders a result: its structured content as YAML, or else its content blocks.
pub fn result_text(result: &JsonObject) -> String {
    let structure = result.get("structuredContent").and_then(|structure| structure.to::<Value>().ok());
    let text = match structure {
        Some(structure) => serde_saphyr::to_string(&structure).unwrap_or_else(|_| structure.to_string()),
        None => blocks(result).join("\n"),
    };
    sanitize_text(&text)
}

/// Renders every block: text unchanged, others by type and size.
fn blocks(result: &JsonObject) -> Vec<String> {
    result
        .list("content")
        .iter()
        .filter_map(|block| block.members().ok())
        .map(|block| block_text(&block))
        .collect()
}

fn block_text(block: &JsonObject) -> String {
    let kind = block.text("type").unwrap_or_default();
    match kind.as_str() {
        "text" => block.text("text").unwrap_or_default(),
        "resource_link" => format!("[{}]", block.text("uri").unwrap_or_default()),
        "resource" => {
            let resource = block.object("resource");
            let uri = resource.text("uri").unwrap_or_default();
            resource.text("text").unwrap_or_else(|| format!("[{uri}]"))
        }
        _ => {
            let size = block.get("data").map_or(0, |data| data.bytes().len().saturating_sub(2) / 4 * 3);
            format!("[{kind} {}, {size} bytes]", block.text("mimeType").unwrap_or_default())
        }
    }
}

/// Notes about coerced arguments and truncation.
pub fn result_notice(result: &JsonObject) -> Option<String> {
    let meta = result.object("_meta");
    let coerced = meta.get("octoprox/coerced").and_then(|changes| changes.to::<Vec<String>>().ok());
    let coerced =
        coerced.map(|changes| format!("Arguments adjusted: {}.", sanitize_text(&changes.join("; "))));
    let handle = meta.get("octoprox/result_handle").and_then(Json::to_text);
    let cut = handle.map(|handle| {
        format!("The result was truncated. Read the rest with: octoprox call result_read handle={handle}")
    });
    let said: Vec<String> = coerced.into_iter().chain(cut).collect();
    (!said.is_empty()).then(|| said.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_in_words() {
        for (result, text) in [
            (
                r#"{"structuredContent":{"iso":"2026","list":[1,2]},"content":[]}"#,
                "iso: \"2026\"\nlist:\n- 1\n- 2\n",
            ),
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"image","mimeType":"image/png","data":"AAAA"}]}"#,
                "a\n[image image/png, 3 bytes]",
            ),
            (
                r#"{"content":[{"type":"resource_link","uri":"x://y"},{"type":"resource","resource":{"uri":"u","text":"t"}}]}"#,
                "[x://y]\nt",
            ),
        ] {
            let result = JsonObject::parse(result.to_owned()).unwrap();
            assert_eq!(result_text(&result), text);
        }
    }
}
