//! Settings file formats: YAML (including JSON), and JSON with comments and TOML for the files of other products.

use crate::clients::jsonc;
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem};
use serde_json::{Map, Value};
use std::io::Read;
use std::path::Path;

/// Files of other products contain more than servers and can be large.
const MAX_FOREIGN_BYTES: u64 = 16 << 20;

/// Parses a file as an object; an empty file is an empty object.
pub fn parse_object(path: &Path, text: &str) -> Result<Map<String, Value>, SettingsProblem> {
    let wrong = |what: String, remedy: &str| {
        SettingsProblem::new(SettingOrigin::File(path.to_owned()), "", what, remedy)
    };
    match parse_as(path, text) {
        Ok(Value::Object(tree)) => Ok(tree),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => {
            Err(wrong("the file is not a map of settings.".to_owned(), "Write it as `name: value` lines."))
        }
        Err(error) => {
            Err(wrong(format!("invalid {}: {error}.", format_of(path, text)), "Fix the syntax error."))
        }
    }
}

/// Detects the format from the file extension and the start of the text.
fn format_of(path: &Path, text: &str) -> &'static str {
    let ends = |with: &str| path.extension().is_some_and(|extension| extension == with);
    if ends("toml") {
        "TOML"
    } else if ends("json") || jsonc::strip_comments(text).text.trim_start().starts_with('{') {
        "JSON"
    } else {
        "YAML"
    }
}

/// Parses a text in the detected format. Error messages do not quote the text.
pub fn parse_as(path: &Path, text: &str) -> Result<Value, String> {
    match format_of(path, text) {
        "TOML" => toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            format!("{} in line {}", error.message(), before.matches('\n').count() + 1)
        }),
        "JSON" if path.extension().is_some_and(|extension| extension == "json") => {
            let plain = jsonc::strip_comments(text).text;
            if plain.trim().is_empty() {
                return Ok(Value::Null);
            }
            // Our own server list may be YAML whatever its extension.
            serde_json::from_str(&plain)
                .or_else(|error| parse_yaml_or_json(text).map_err(|_| error.to_string()))
        }
        _ => parse_yaml_or_json(text),
    }
}

/// Reads a file of another product.
pub fn read_foreign(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_FOREIGN_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FOREIGN_BYTES {
        return Err(std::io::Error::other(format!("larger than {} MiB", MAX_FOREIGN_BYTES >> 20)));
    }
    Ok(text)
}

/// `yes` and `on` are strings, not booleans: YAML versions disagree on them, so they must not decide what is allowed.
/// JSON is tried first, since YAML does not allow tabs before keys.
fn parse_yaml_or_json(text: &str) -> Result<Value, String> {
    let plain = jsonc::strip_comments(text).text;
    if plain.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(&plain)
    {
        return Ok(value);
    }
    if text.lines().all(|line| line.trim_start().starts_with('#') || matches!(line.trim(), "" | "---")) {
        return Ok(Value::Null);
    }
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let text = error.to_string();
        text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_file_may_be() {
        for (text, value) in [
            ("", json!(null)),
            ("# nothing\n---\n", json!(null)),
            (
                "a: yes\nb: true\nc: 0o10\nd: on\ne: 1.5\nf: '1'",
                json!({"a": "yes", "b": true, "c": 8, "d": "on", "e": 1.5, "f": "1"}),
            ),
            ("{\n\t\"a\": [1]\n}", json!({"a": [1]})),
            ("// x\n{\"a\": [1,], /* y */}", json!({"a": [1]})),
            ("a: &x {b: 1}\nc: *x", json!({"a": {"b": 1}, "c": {"b": 1}})),
        ] {
            assert_eq!(parse_yaml_or_json(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_it_may_not_be() {
        for text in ["a: 1\na: 2", "a: [1", "a:\n\tb: 1", "a: 1\n b: 2"] {
            let error = parse_yaml_or_json(text).unwrap_err();
            assert!(error.contains("line"), "{text}: {error}");
        }
    }
}
