//! Requirements that every tool of the toolbox meets, without a browser.

use crate::{BrowserSettings, toolbox};
use serde_json::Value;

#[test]
fn every_field_is_documented_and_every_description_has_the_right_length() {
    for tool in toolbox(BrowserSettings::default()).tools {
        let definition: Value = tool.definition.to_json().to().unwrap();
        let words = definition["description"].as_str().unwrap().split_whitespace().count();
        assert!((10..=60).contains(&words), "{}: {words} words", tool.name);
        for schema in ["inputSchema", "outputSchema"] {
            check(&definition[schema], &format!("{} {schema}", tool.name));
        }
        assert_eq!(definition["inputSchema"]["additionalProperties"], false, "{}", tool.name);
        assert_eq!(
            definition.get("outputSchema").is_none(),
            tool.name == "browser_screenshot",
            "{}",
            tool.name
        );
        assert!(!tool.examples.is_empty(), "{}", tool.name);
    }
}

fn check(schema: &Value, path: &str) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        assert!(field["description"].as_str().is_some_and(|said| said.len() > 3), "{path}: {field}");
        assert!(
            !field["type"].is_array() && field.get("oneOf").is_none() && field.get("anyOf").is_none(),
            "{path}: {field}"
        );
        check(field, &path);
        check(&field["items"], &path);
    }
}
