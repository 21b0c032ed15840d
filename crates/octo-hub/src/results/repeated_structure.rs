//! Whether the text of a result says the same as its structured content.

use octo_model::Json;
use serde_json::Value;

/// Larger content is not parsed.
const MAX_COMPARED_BYTES: usize = 1 << 20;
/// The only member of structured content that some servers wrap a value in.
const WRAPPED_VALUE: &str = "result";

/// Whether the blocks of text say what the structure says, and nothing else. Of large ones, any JSON is taken for it.
pub fn repeats_structure(content: &[Json], structure: &Json) -> bool {
    let texts: Vec<Json> = content.iter().filter_map(|block| block.member("text")).collect();
    let size = texts.iter().map(|text| text.bytes().len()).sum::<usize>().max(structure.bytes().len());
    if size > MAX_COMPARED_BYTES {
        return texts.iter().all(looks_like_json);
    }
    let texts: Vec<String> = texts.iter().filter_map(Json::to_text).collect();
    if texts.iter().any(|text| text.trim() == structure.as_str()) {
        return true;
    }
    let Ok(whole) = structure.to::<Value>() else { return false };
    let wrapped = whole.as_object().filter(|members| members.len() == 1);
    let wrapped = wrapped.and_then(|members| members.get(WRAPPED_VALUE));
    let says = |text: &String, value: &Value| {
        value.as_str() == Some(text) || serde_json::from_str::<Value>(text).is_ok_and(|said| said == *value)
    };
    if texts.iter().any(|text| says(text, &whole) || wrapped.is_some_and(|value| says(text, value))) {
        return true;
    }
    // Each element of a list in a block of its own.
    let elements = wrapped.and_then(Value::as_array);
    elements.is_some_and(|elements| {
        elements.len() == texts.len() && texts.iter().zip(elements).all(|(text, value)| says(text, value))
    })
}

fn looks_like_json(text: &Json) -> bool {
    let raw = text.as_str().trim_start_matches(['"', ' ']);
    let raw = raw.trim_start_matches("\\n");
    raw.starts_with(['{', '['])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn large_texts_are_not_parsed() {
        let rows = json!({"rows": "x".repeat(MAX_COMPARED_BYTES)});
        for (text, repeats) in [(rows.to_string(), true), ("Many rows.".to_owned(), false)] {
            let blocks = [Json::from(json!({"type": "text", "text": text}))];
            assert_eq!(repeats_structure(&blocks, &Json::from(rows.clone())), repeats);
        }
    }
}
