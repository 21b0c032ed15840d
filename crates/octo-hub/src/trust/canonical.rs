//! Canonical text of definitions: one text for all spellings.

use aws_lc_rs::digest::{Context, SHA256};
use octo_ports::PinKind;
use serde_json::{Number, Value};

/// Members of `_meta` about apps, and those that clients show to models and people.
const APP_MEMBERS: [&str; 7] = [
    "ui",
    "ui/resourceUri",
    "openai/outputTemplate",
    "openai/widgetDescription",
    "openai/toolInvocation/invoking",
    "openai/toolInvocation/invoked",
    "anthropic/searchHint",
];

/// SHA-256 of a definition, in hexadecimal. Of `_meta`, which is for programs and may change with every listing, only what
/// it says about an app, and what clients show.
pub fn hash(what: PinKind, definition: &Value) -> String {
    let mut text = String::new();
    match definition {
        Value::Object(members) => {
            let mut members = members.clone();
            if let Some(meta) = members.remove("_meta") {
                let meta = app_meta(&meta);
                if !meta.is_null() {
                    members.insert("_meta".to_owned(), meta);
                }
            }
            write_canonical(&Value::Object(members), &mut text);
        }
        other => write_canonical(other, &mut text),
    }
    digest([what.as_str(), &text])
}

/// What `_meta` says about an app; null if nothing.
pub fn app_meta(meta: &Value) -> Value {
    let member = |name: &&str| Some(((*name).to_owned(), meta.get(*name)?.clone()));
    let members: serde_json::Map<String, Value> = APP_MEMBERS.iter().filter_map(member).collect();
    if members.is_empty() { Value::Null } else { Value::Object(members) }
}

/// Digest of length-prefixed parts, so that different lists never collide.
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part.as_bytes());
    }
    octo_model::hex(context.finish().as_ref())
}

/// Sorted keys, no whitespace, whole numbers without a fraction.
pub fn canonical_text(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, into: &mut String) {
    match value {
        Value::Object(members) => {
            let mut keys: Vec<&String> = members.keys().collect();
            keys.sort();
            into.push('{');
            for (at, key) in keys.into_iter().enumerate() {
                if at > 0 {
                    into.push(',');
                }
                into.push_str(&Value::from(key.as_str()).to_string());
                into.push(':');
                write_canonical(members.get(key).unwrap_or(&Value::Null), into);
            }
            into.push('}');
        }
        Value::Array(parts) => {
            into.push('[');
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    into.push(',');
                }
                write_canonical(part, into);
            }
            into.push(']');
        }
        Value::Number(number) => into.push_str(&canonical_number(number)),
        other => into.push_str(&other.to_string()),
    }
}

fn canonical_number(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => format!("{float:.0}"),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::ItemKind;
    use serde_json::json;

    const TOOL: PinKind = PinKind::Item(ItemKind::Tool);

    #[test]
    fn spellings_of_the_same_have_one_hash() {
        let one = json!({"name": "a", "inputSchema": {"type": "object", "maximum": 1}, "_meta": {"at": 1}});
        let other = json!({"inputSchema": {"maximum": 1.0, "type": "object"}, "name": "a"});
        assert_eq!(hash(TOOL, &one), hash(TOOL, &other));
        assert_ne!(hash(TOOL, &one), hash(PinKind::Item(ItemKind::Prompt), &one));
        assert_ne!(hash(TOOL, &json!({"name": "a"})), hash(TOOL, &json!({"name": "a "})));
        assert_ne!(digest(["ab", "c"]), digest(["a", "bc"]));
        assert_eq!(canonical_text(&json!({"b": [1.0, -0.5], "a": "é\n"})), r#"{"a":"é\n","b":[1,-0.5]}"#);
    }
}
