//! Compact signatures of tools for models: `name(path:str, mode?:r|w, filter?~) — First sentence.`

mod argument_type;
mod first_sentence;

use argument_type::argument_type;
use first_sentence::first_sentence;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Optional arguments that are shown.
const MAX_OPTIONAL_ARGUMENTS: usize = 6;
/// Required arguments that are shown. Tools in use have about ten at most.
const MAX_REQUIRED_ARGUMENTS: usize = 100;
/// Characters of the arguments, after which optional ones are left out.
const MAX_ARGUMENT_CHARS: usize = 120;
/// Characters of the name of an argument.
const MAX_NAME_CHARS: usize = 64;
/// Stands for what is left out.
const ELLIPSIS: &str = "…";

/// The signature of a tool. Required arguments come first and are never left out; `?` marks optional ones, `~` those
/// with parts of their own, and `…` stands for further optional ones, or for all if there is no schema. An invalid schema
/// has no arguments.
pub fn tool_signature(name: &str, description: &str, schema: Option<&Value>) -> String {
    let arguments = schema.map_or_else(|| ELLIPSIS.to_owned(), argument_list);
    let sentence = first_sentence(description);
    let separator = if sentence.is_empty() { "" } else { " — " };
    format!("{name}({arguments}){separator}{sentence}")
}

fn argument_list(schema: &Value) -> String {
    let nothing = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
    let required = required_names(schema);
    // Required names come in the order of the properties, then those without one.
    let known = properties.keys().map(String::as_str).filter(|name| required.contains(name));
    let unknown = required.iter().copied().filter(|name| !properties.contains_key(*name));
    let mut seen = HashSet::new();
    let mut names = known.chain(unknown).filter(|name| seen.insert(*name));
    let mut arguments = Vec::new();
    for name in names.by_ref().take(MAX_REQUIRED_ARGUMENTS) {
        arguments.push(argument(name, "", properties.get(name), schema));
    }
    let mut is_truncated = names.next().is_some();
    let mut chars: usize = arguments.iter().map(|argument| argument.chars().count()).sum();
    let optional = properties.iter().filter(|(name, _)| !required.contains(&name.as_str()));
    for (count, (name, parameter)) in optional.enumerate() {
        if count == MAX_OPTIONAL_ARGUMENTS || chars > MAX_ARGUMENT_CHARS {
            is_truncated = true;
            break;
        }
        let argument = argument(name, "?", Some(parameter), schema);
        chars += argument.chars().count();
        arguments.push(argument);
    }
    if is_truncated {
        arguments.push(ELLIPSIS.to_owned());
    }
    arguments.join(", ")
}

fn required_names(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).take(10 * MAX_REQUIRED_ARGUMENTS).collect()
}

fn argument(name: &str, mark: &str, parameter: Option<&Value>, schema: &Value) -> String {
    let shown = parameter.map(|parameter| argument_type(parameter, schema)).unwrap_or_default();
    let colon = if shown.is_empty() || shown.starts_with('~') { "" } else { ":" };
    format!("{}{mark}{colon}{shown}", argument_name(name))
}

/// A name as it is; in quotes if it could be misread.
fn argument_name(name: &str) -> String {
    let is_plain =
        |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '$' | '@' | '/');
    let mut shown: String = name.chars().take(MAX_NAME_CHARS).collect();
    if shown.len() < name.len() {
        shown.push_str(ELLIPSIS);
    } else if !name.is_empty() && name.chars().all(is_plain) {
        return shown;
    }
    Value::String(shown).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn signatures_show_arguments_and_the_first_sentence() {
        let schema = json!({
            "type": "object",
            "required": ["path", "text"],
            "properties": {
                "mode": {"enum": ["append", "replace"]},
                "text": {"type": "string"},
                "path": {"type": "string"},
                "lines": {"type": "array", "items": {"type": "integer"}},
                "filter": {"type": "object", "properties": {"since": {"type": "string"}}},
            },
        });
        assert_eq!(
            tool_signature("write_file", "Write a file. Fails if it exists.", Some(&schema)),
            "write_file(text:str, path:str, mode?:append|replace, lines?:int[], filter?~) — Write a file."
        );
    }

    #[test]
    fn required_arguments_are_never_left_out() {
        let names: Vec<String> = (0..40).map(|at| format!("required_argument_{at}")).collect();
        let mut properties: Map<String, Value> =
            (0..20).map(|at| (format!("optional_{at}"), json!({}))).collect();
        properties.extend(names.iter().map(|name| (name.clone(), json!({"type": "string"}))));
        let signature = tool_signature("t", "", Some(&json!({"required": names, "properties": properties})));
        assert!(names.iter().all(|name| signature.contains(&format!("{name}:str"))), "{signature}");
        assert!(signature.ends_with(", …)") && !signature.contains('?'), "{signature}");
    }

    #[test]
    fn further_optional_arguments_are_an_ellipsis() {
        let properties = |count: usize| -> Map<String, Value> {
            (0..count).map(|at| (format!("p{at}"), json!({"type": "boolean"}))).collect()
        };
        let rows = [
            (6, "t(p0?:bool, p1?:bool, p2?:bool, p3?:bool, p4?:bool, p5?:bool)"),
            (7, "t(p0?:bool, p1?:bool, p2?:bool, p3?:bool, p4?:bool, p5?:bool, …)"),
        ];
        for (count, expected) in rows {
            assert_eq!(tool_signature("t", "", Some(&json!({"properties": properties(count)}))), expected);
        }
    }

    #[test]
    fn invalid_schemas_and_hostile_names_are_tolerated() {
        let long = "n".repeat(100_000);
        let rows = [
            (json!(null), "t()"),
            (json!([]), "t()"),
            (json!({"required": "a", "properties": []}), "t()"),
            (json!({"required": ["a", 5, "a"], "properties": {"a": 7}}), "t(a)"),
            (json!({"required": ["lost"]}), "t(lost)"),
            (json!({"properties": {"a": {"type": 5}, "b": null}}), "t(a?, b?)"),
            (
                json!({"properties": {"a, b:str) — x\n": {"type": "string"}, "": {}}}),
                r#"t("a, b:str) — x\n"?:str, ""?)"#,
            ),
            (json!({"required": [long]}), &format!(r#"t("{}…")"#, "n".repeat(MAX_NAME_CHARS))),
        ];
        for (schema, expected) in rows {
            assert_eq!(tool_signature("t", "", Some(&schema)), expected);
        }
        let many: Vec<String> = (0..100_000).map(|at| format!("a{at}")).collect();
        assert_eq!(tool_signature("t", "Do it.", None), "t(…) — Do it.");
        let signature = tool_signature("t", &"word ".repeat(100_000), Some(&json!({"required": many})));
        assert!(signature.len() < 2_000, "{}", signature.len());
    }
}
