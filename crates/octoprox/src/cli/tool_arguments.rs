//! `name=value` arguments, parsed according to the tool's schema.

use crate::app_error::AppError;
use octo_model::{Json, abbreviate};
use serde_json::{Map, Value};
use std::io::Read;

/// Maximum size of an argument that is read from a file or standard input.
const MAX_ARGUMENT_BYTES: u64 = 64 << 20;
/// Characters of a value in an error message.
const MAX_SHOWN_CHARS: usize = 60;

/// Returns the arguments of a call: the object of `--args`, overridden by the pairs.
pub fn parse_arguments(whole: Option<&str>, pairs: &[String], schema: &Value) -> Result<Json, AppError> {
    let mut arguments = match whole {
        None => Map::new(),
        Some(text) => parse_object(text)?,
    };
    for pair in pairs {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            AppError::invalid(format!(
                "`{}` is not an argument. Write it as name=value, or use --args '{{…}}'.",
                abbreviate(pair, MAX_SHOWN_CHARS)
            ))
        })?;
        arguments.insert(name.to_owned(), parse_value(name, value, schema)?);
    }
    Ok(Json::from(Value::Object(arguments)))
}

fn parse_object(text: &str) -> Result<Map<String, Value>, AppError> {
    let text =
        if text == "-" { read_limited(std::io::stdin().lock(), "standard input")? } else { text.to_owned() };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(AppError::invalid("--args is not a JSON object. Write it as '{\"name\": \"value\"}'.")),
        Err(error) => Err(AppError::invalid(format!("--args is not JSON: {error}."))),
    }
}

/// Parses a value: `@file` reads a file, `@@` is a literal @. The value is text if the schema accepts a string,
/// otherwise JSON; if the schema gives no type, anything that is not JSON is text.
fn parse_value(name: &str, text: &str, schema: &Value) -> Result<Value, AppError> {
    let text = match text.strip_prefix('@') {
        Some(rest) if rest.starts_with('@') => rest.to_owned(),
        Some(path) if !path.is_empty() => {
            let file = std::fs::File::open(path);
            read_limited(file.map_err(|error| AppError::invalid(format!("{name}: {path}: {error}.")))?, path)?
        }
        _ => text.to_owned(),
    };
    let types = param_types(name, schema);
    if types.iter().any(|kind| kind == "string") {
        return Ok(Value::String(text));
    }
    match serde_json::from_str(&text) {
        Ok(value) => Ok(value),
        Err(_) if types.is_empty() => Ok(Value::String(text)),
        Err(_) => Err(AppError::invalid(format!(
            "{name}: `{}` is not of type {}. {}",
            abbreviate(&text, MAX_SHOWN_CHARS),
            types.join(" or "),
            type_example(&types)
        ))),
    }
}

fn type_example(types: &[String]) -> &'static str {
    match types.first().map(String::as_str) {
        Some("array") => "Write it as '[\"one\", \"two\"]'.",
        Some("object") => "Write it as '{\"name\": \"value\"}'.",
        Some("boolean") => "Write true or false.",
        _ => "Write a number.",
    }
}

/// Returns the types of a parameter in the schema; empty if there are none.
pub fn param_types(name: &str, schema: &Value) -> Vec<String> {
    let Some(property) = schema.pointer("/properties").and_then(|all| all.get(name)) else {
        return Vec::new();
    };
    let mut found = declared_types(property);
    for key in ["anyOf", "oneOf"] {
        found.extend(
            property.get(key).and_then(Value::as_array).into_iter().flatten().flat_map(declared_types),
        );
    }
    if found.is_empty() && property.get("enum").is_some() {
        found.push("string".to_owned());
    }
    found.retain(|kind| kind != "null");
    found
}

fn declared_types(schema: &Value) -> Vec<String> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn read_limited(reader: impl Read, name: &str) -> Result<String, AppError> {
    let mut text = String::new();
    reader
        .take(MAX_ARGUMENT_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| AppError::invalid(format!("{name}: {error}.")))?;
    if text.len() as u64 > MAX_ARGUMENT_BYTES {
        let limit = MAX_ARGUMENT_BYTES >> 20;
        return Err(AppError::invalid(format!("{name} is larger than {limit} MiB. Pass a smaller value.")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"properties": {
            "text": {"type": "string"}, "count": {"type": "integer"}, "on": {"type": "boolean"},
            "list": {"type": "array"}, "either": {"type": ["string", "integer"]}, "any": {},
            "choice": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "word": {"enum": ["a"]},
        }})
    }

    #[test]
    fn values_are_what_the_schema_takes() {
        for (pair, value) in [
            ("text=5", json!("5")),
            ("text=", json!("")),
            ("text=a=b", json!("a=b")),
            ("text=@@home", json!("@home")),
            ("text=@", json!("@")),
            ("count=5", json!(5)),
            ("on=true", json!(true)),
            ("list=[1, \"x\"]", json!([1, "x"])),
            ("either=5", json!("5")),
            ("any=5", json!(5)),
            ("any=word", json!("word")),
            ("choice=5", json!(5)),
            ("word=a", json!("a")),
            ("unknown=true", json!(true)),
        ] {
            let read = parse_arguments(None, &[pair.to_owned()], &schema()).unwrap().to::<Value>().unwrap();
            let name = pair.split('=').next().unwrap();
            assert_eq!(read[name], value, "{pair}");
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        for pair in ["count=five", "on=yes", "list=a,b", "nothing", "text=@/no/such/file"] {
            assert!(parse_arguments(None, &[pair.to_owned()], &schema()).is_err(), "{pair}");
        }
        for whole in ["[1]", "{", "5"] {
            assert!(parse_arguments(Some(whole), &[], &schema()).is_err(), "{whole}");
        }
    }

    #[test]
    fn large_values_are_refused_and_not_repeated() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let pair = |name: &str| format!("{name}=@{}", file.path().display());
        std::fs::write(file.path(), "x".repeat(1 << 20)).unwrap();
        let error = parse_arguments(None, &[pair("count")], &schema()).unwrap_err();
        assert!(
            error.text().len() < 200 && error.text().contains("Write a number"),
            "{}",
            error.text().len()
        );
        file.as_file().set_len(MAX_ARGUMENT_BYTES).unwrap();
        assert!(parse_arguments(None, &[pair("text")], &schema()).is_ok());
        file.as_file().set_len(MAX_ARGUMENT_BYTES + 1).unwrap();
        let error = parse_arguments(None, &[pair("text")], &schema()).unwrap_err();
        assert!(error.text().contains("larger than 64 MiB"), "{}", error.text());
    }

    #[test]
    fn pairs_go_over_the_object() {
        let arguments =
            parse_arguments(Some(r#"{"count": 1, "text": "a"}"#), &["count=2".to_owned()], &schema())
                .unwrap();
        assert_eq!(arguments.to::<Value>().unwrap(), json!({"count": 2, "text": "a"}));
    }
}
