//! Results for clients that get no structured content.

use octo_hub::{Structure, remove_text_only_mark, shows_structure};
use octo_model::{Json, JsonObject};

/// Larger structured content stays as it is. Only replies to apps are larger.
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// Removes the structured content of a result that has text, if it is not for the model. The text of native tools has
/// all of it; to that of another tool it is added, unless it is there already.
pub fn without_structure(mut result: JsonObject, structure: Structure, is_native: bool) -> JsonObject {
    let is_text_only = remove_text_only_mark(&mut result) || structure == Structure::Off;
    let mut content = result.list("content");
    let is_large = |structure: &Json| structure.bytes().len() > MAX_COMPARED_BYTES;
    let keeps_structure = !is_native && result.get("structuredContent").is_some_and(is_large);
    if !is_text_only || content.is_empty() || keeps_structure {
        return result;
    }
    if let Some(structure) = result.remove("structuredContent")
        && !is_native
        && !shows_structure(&content, &structure)
    {
        let block = JsonObject::new().with("type", "text").with("text", structure.as_str());
        content.push(block.to_json());
        result.set("content", Json::array(&content));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn large_structures_are_not_compared() {
        let result = |len: usize| {
            let structure = json!({"rows": "x".repeat(len)});
            let result = json!({"content": [{"type": "text", "text": "a"}], "structuredContent": structure});
            Json::from(result).members().unwrap()
        };
        let large = result(MAX_COMPARED_BYTES);
        assert_eq!(without_structure(large.clone(), Structure::Off, false), large);
        let shown = without_structure(large, Structure::Off, true);
        assert!(shown.get("structuredContent").is_none() && shown.list("content").len() == 1);
        assert!(without_structure(result(100), Structure::Off, false).get("structuredContent").is_none());
    }

    #[test]
    fn what_only_the_structure_says_becomes_text() {
        for (texts, structure, is_native, expected) in [
            (
                &["Found 1 row."] as &[&str],
                json!({"id": 42}),
                false,
                &["Found 1 row.", r#"{"id":42}"#] as &[&str],
            ),
            (&["Found 1 row."], json!({"id": 42}), true, &["Found 1 row."]),
            (&[r#"{ "id": 42 }"#], json!({"id": 42}), false, &[r#"{ "id": 42 }"#]),
            (&["note", r#"{"id":42}"#], json!({"id": 42}), false, &["note", r#"{"id":42}"#]),
            (&["hello"], json!({"result": "hello"}), false, &["hello"]),
            (&["[1,2]"], json!({"result": [1, 2]}), false, &["[1,2]"]),
            (&["1", "b"], json!({"result": [1, "b"]}), false, &["1", "b"]),
            (&["1"], json!({"result": [1, 2]}), false, &["1", r#"{"result":[1,2]}"#]),
            (&["3"], json!({"result": 3, "unit": "m"}), false, &["3", r#"{"result":3,"unit":"m"}"#]),
            (&[], json!({"id": 42}), false, &[]),
        ] {
            let blocks: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
            let result = json!({"content": blocks, "structuredContent": structure});
            let result = Json::from(result).members().unwrap();
            let shown = without_structure(result.clone(), Structure::Off, is_native);
            let said: Vec<String> =
                shown.list("content").iter().filter_map(|block| block.member("text")?.to_text()).collect();
            assert_eq!(said, expected, "{structure}");
            assert_eq!(shown.get("structuredContent").is_some(), texts.is_empty(), "{structure}");
            assert_eq!(without_structure(result.clone(), Structure::On, is_native), result);
        }
    }
}
