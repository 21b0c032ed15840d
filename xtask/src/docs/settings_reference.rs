//! docs/reference/settings.md, from the schema of the settings file.

use super::schema_fields::Field;
use super::{markdown_tables, schema_fields};
use serde_json::Value;

pub fn page(root: &Value) -> String {
    let mut text = markdown_tables::title("Settings");
    if let Some(about) = root.get("description").and_then(Value::as_str) {
        text.push_str(&format!("\n{about}\n"));
    }
    for section in sections(schema_fields::fields(root)) {
        let name = section.first().map(|field| field.path.as_str()).unwrap_or_default();
        text.push_str(&format!("\n## {name}\n\n{}", markdown_tables::inputs("setting", &section)));
    }
    text
}

/// One section for each top-level setting, with everything below it.
fn sections(fields: Vec<Field>) -> Vec<Vec<Field>> {
    let mut sections: Vec<Vec<Field>> = Vec::new();
    for field in fields {
        let below = field.path.contains(['.', '[']);
        match sections.last_mut() {
            Some(section) if below => section.push(field),
            _ => sections.push(vec![field]),
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_section_for_each_setting_at_the_top() {
        let page = page(&json!({
            "description": "All of it is optional.",
            "properties": {
                "listen": {"type": "string", "description": "Address of the faces.", "default": "127.0.0.1:7000"},
                "limits": {"type": "object", "description": "Bounds.", "properties": {
                    "reply_bytes": {"type": "integer", "description": "Cap of a reply.", "default": 65536},
                }},
            },
        }));
        let expected = "
All of it is optional.

## listen

| setting | type | default | description |
|---|---|---|---|
| `listen` | string | `\"127.0.0.1:7000\"` | Address of the faces. |

## limits

| setting | type | default | description |
|---|---|---|---|
| `limits` | object |  | Bounds. |
| `limits.reply_bytes` | integer | `65536` | Cap of a reply. |
";
        assert_eq!(page, format!("{}{expected}", markdown_tables::title("Settings")));
    }
}
