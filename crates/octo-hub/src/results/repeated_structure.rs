//! Whether the text of a result says the same as its structured content.

use crate::results::image_size::is_image;
use octo_model::Json;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Larger content is not parsed into values.
const MAX_COMPARED_BYTES: usize = 1 << 20;
/// The only member of structured content that some servers wrap a value in.
const WRAPPED_VALUE: &str = "result";

/// Whether the blocks say what the structure says, and nothing else. Images are beside both.
pub fn repeats_structure(content: &[Json], structure: &Json) -> bool {
    let blocks: Vec<&Json> = content.iter().filter(|block| !is_image(block)).collect();
    let texts = texts(content);
    texts.len() == blocks.len() && texts_with_structure(&texts, structure).into_iter().all(|says| says)
}

/// Whether some block of text, or all together, say what the structure says.
pub fn shows_structure(content: &[Json], structure: &Json) -> bool {
    texts_with_structure(&texts(content), structure).into_iter().any(|says| says)
}

fn texts(content: &[Json]) -> Vec<String> {
    content.iter().filter_map(|block| block.member("text")?.to_text()).collect()
}

/// Of each text whether it says what the structure says. A large one is taken for it if it is JSON of about the same size.
fn texts_with_structure(texts: &[String], structure: &Json) -> Vec<bool> {
    let bytes = structure.bytes().len();
    if texts.iter().map(String::len).sum::<usize>().max(bytes) > MAX_COMPARED_BYTES {
        return texts.iter().map(|text| is_json_of_size(text, bytes)).collect();
    }
    let Ok(whole) = structure.to::<Value>() else { return vec![false; texts.len()] };
    let wrapped = whole.as_object().filter(|members| members.len() == 1);
    let wrapped = wrapped.and_then(|members| members.get(WRAPPED_VALUE));
    let says = |text: &String, value: &Value| {
        value.as_str() == Some(text) || serde_json::from_str::<Value>(text).is_ok_and(|said| said == *value)
    };
    // Each element of a list in a block of its own.
    let elements = wrapped.and_then(Value::as_array).filter(|elements| elements.len() == texts.len());
    if elements.is_some_and(|elements| texts.iter().zip(elements).all(|(text, value)| says(text, value))) {
        return vec![true; texts.len()];
    }
    let says_it = |text: &String| says(text, &whole) || wrapped.is_some_and(|value| says(text, value));
    texts.iter().map(says_it).collect()
}

/// Indentation and escapes at most double the size of most structures.
fn is_json_of_size(text: &str, bytes: usize) -> bool {
    (bytes / 2..=bytes.saturating_mul(2)).contains(&text.len())
        && text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(text: &str) -> Json {
        Json::from(json!({"type": "text", "text": text}))
    }

    #[test]
    fn every_block_has_to_repeat_the_structure() {
        let structure = json!({"a": 1});
        let image = Json::from(json!({"type": "image", "data": "x", "mimeType": "image/png"}));
        let file = Json::from(json!({"type": "resource", "resource": {"uri": "file:///a", "text": "b"}}));
        let rows: [(Value, Vec<Json>, bool); 9] = [
            (structure.clone(), vec![text("{\"a\":1}")], true),
            (structure.clone(), vec![text(" {\"a\": 1}\n")], true),
            (structure.clone(), vec![text("{\"a\":1}"), image.clone()], true),
            (structure.clone(), vec![image], true),
            (structure.clone(), vec![text("WARNING"), text("{\"a\":1}")], false),
            (structure.clone(), vec![text("{\"a\":1}"), file.clone()], false),
            (structure, vec![file], false),
            (json!({"result": ["x", 2]}), vec![text("x"), text("2")], true),
            (json!({"result": "x"}), vec![text("x")], true),
        ];
        for (structure, content, repeats) in rows {
            assert_eq!(repeats_structure(&content, &Json::from(structure)), repeats, "{content:?}");
        }
    }

    #[test]
    fn large_texts_are_compared_by_size() {
        let rows = json!({"rows": "x".repeat(MAX_COMPARED_BYTES)});
        let log = format!("[12:00] INFO {}", "x".repeat(MAX_COMPARED_BYTES));
        let list = format!("[{}1]", "1,".repeat(MAX_COMPARED_BYTES));
        for (said, structure, repeats) in [
            (rows.to_string(), &rows, true),
            (serde_json::to_string_pretty(&rows).unwrap(), &rows, true),
            ("Many rows.".to_owned(), &rows, false),
            (log.clone(), &rows, false),
            (log, &json!({"code": 0}), false),
            (list, &json!({"code": 0}), false),
        ] {
            assert_eq!(repeats_structure(&[text(&said)], &Json::from(structure.clone())), repeats);
        }
    }
}
