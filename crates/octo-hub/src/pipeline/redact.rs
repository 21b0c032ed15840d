//! Removes members of results as the policy requires.

use crate::results::structure_text::structure_text;
use octo_model::{Json, JsonObject, ToolError};
use serde_json::{Value, json};

/// Removes the values of these members at any depth. The text content is regenerated from the structured
/// content, since a tool's own text may contain them.
pub fn redact(reply: &JsonObject, members: &[String], is_native: bool) -> Result<JsonObject, ToolError> {
    let mut whole: Value = reply.to_json().to().map_err(ToolError::internal)?;
    redact_value(&mut whole, members);
    let structure = whole.get("structuredContent").map(Json::of);
    let text = structure.map(|structure| structure_text(&structure, is_native)).ok_or_else(|| {
        ToolError::denied("The policy redacts members of this result, but it has no structured content.")
            .hint("Use a tool with structured results, or ask the operator to change the rule.")
    })?;
    if let Value::Object(members) = &mut whole {
        members.insert("content".to_owned(), json!([{"type": "text", "text": text}]));
    }
    Json::from(whole).members().map_err(ToolError::internal)
}

fn redact_value(value: &mut Value, members: &[String]) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                if members.contains(name) {
                    *value = blank(value);
                } else {
                    redact_value(value, members);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(item, members)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// An empty value of the same type where there is one, to match the output schema.
fn blank(value: &Value) -> Value {
    match value {
        Value::String(_) => Value::from(""),
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => Value::Object(serde_json::Map::new()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(value: &Value) -> JsonObject {
        Json::of(value).members().unwrap()
    }

    #[test]
    fn members_are_emptied_at_any_depth_in_structure_and_text() {
        let whole = json!({"content": [{"type": "text", "text": "s3cret"}], "structuredContent":
            {"password": "s3cret", "rows": [{"password": 7, "name": "ada"}], "keys": {"password": ["s3cret"]}}, "vendor": {"password": "s3cret"}});
        let wanted =
            json!({"password": "", "rows": [{"password": null, "name": "ada"}], "keys": {"password": []}});
        for (is_native, text) in [(true, "rows[0].name: ada".to_owned()), (false, wanted.to_string())] {
            let redacted = redact(&reply(&whole), &["password".to_owned()], is_native).unwrap();
            assert!(!redacted.to_json().as_str().contains("s3cret"), "{redacted:?}");
            assert_eq!(redacted.get("structuredContent").unwrap().to::<Value>().unwrap(), wanted);
            assert_eq!(redacted.list("content")[0].member("text").unwrap().to_text(), Some(text));
        }
    }

    #[test]
    fn a_result_without_structure_is_refused() {
        let text = json!({"content": [{"type": "text", "text": "password: s3cret"}]});
        let error = redact(&reply(&text), &["password".to_owned()], true).unwrap_err();
        assert!(!format!("{error:?}").contains("s3cret") && error.hint.is_some());
    }
}
