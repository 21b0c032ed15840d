//! Multipart forms with files.

use crate::document::request::param_style::to_text;
use crate::value_ext::ValueExt;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use octo_toolkit::ToolError;
use serde_json::{Map, Value};

/// Encodes an object as a form. A file is `{"content": "text"}` or `{"base64": "…"}`, with `filename` and
/// `content_type`.
pub(crate) fn encode(
    form: &Map<String, Value>,
    encoding: &Value,
    boundary: &str,
) -> Result<Vec<u8>, ToolError> {
    let mut body = Vec::new();
    for (name, value) in form {
        let said = encoding.member(name).member("contentType").as_str();
        match value {
            Value::Null => {}
            Value::Array(items) if !items.iter().any(Value::is_object) || items.iter().all(is_file) => {
                for item in items {
                    part(&mut body, name, item, said, boundary)?;
                }
            }
            value => part(&mut body, name, value, said, boundary)?,
        }
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(body)
}

fn is_file(value: &Value) -> bool {
    let known = ["content", "base64", "filename", "content_type"];
    value.as_object().is_some_and(|file| {
        (file.contains_key("content") || file.contains_key("base64"))
            && file.iter().all(|(name, value)| known.contains(&name.as_str()) && value.is_string())
    })
}

fn part(
    body: &mut Vec<u8>,
    name: &str,
    value: &Value,
    said: Option<&str>,
    boundary: &str,
) -> Result<(), ToolError> {
    let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quote_name(name));
    let (kind, content) = if is_file(value) {
        let text = |member: &str| value.member(member).as_str();
        head.push_str(&format!("; filename=\"{}\"", quote_name(text("filename").unwrap_or("file"))));
        let content = match text("base64") {
            Some(encoded) => decode_base64(name, encoded)?,
            None => text("content").unwrap_or_default().as_bytes().to_vec(),
        };
        let kind = text("content_type").or(said).unwrap_or("application/octet-stream");
        (Some(kind), content)
    } else if value.is_object() || value.is_array() {
        (Some(said.unwrap_or("application/json")), value.to_string().into_bytes())
    } else {
        (said, to_text(value).into_bytes())
    };
    if let Some(kind) = kind {
        let kind: String = kind.chars().filter(|c| !c.is_control()).collect();
        head.push_str(&format!("\r\nContent-Type: {kind}"));
    }
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(b"\r\n\r\n");
    body.extend_from_slice(&content);
    body.extend_from_slice(b"\r\n");
    Ok(())
}

/// Decodes a file given as base64.
pub(crate) fn decode_base64(name: &str, encoded: &str) -> Result<Vec<u8>, ToolError> {
    STANDARD.decode(encoded.trim()).map_err(|_| {
        ToolError::invalid(format!("`{name}` is not valid base64."))
            .hint("Pass text as `content` instead of `base64`.")
    })
}

/// Quotes names as browsers do in this header.
fn quote_name(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A").replace('\0', "%00")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_files_and_json_are_parts() {
        let form = json!({
            "note": "hi", "n": 7, "tags": ["a", "b"], "meta": {"k": 1}, "gone": null,
            "pic": {"filename": "a\"b\r\n.png", "base64": "AAE=", "content_type": "image/png"},
        });
        let body = encode(form.as_object().unwrap(), &Value::Null, "B").unwrap();
        let text = String::from_utf8_lossy(&body);
        assert!(
            text.contains("--B\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhi\r\n"),
            "{text}"
        );
        assert_eq!(text.matches("name=\"tags\"").count(), 2);
        assert!(text.contains("name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{\"k\":1}"));
        assert!(text.contains("filename=\"a%22b%0D%0A.png\"\r\nContent-Type: image/png\r\n\r\n\0\u{1}\r\n"));
        assert!(text.ends_with("--B--\r\n") && !text.contains("gone"));
        assert!(encode(json!({"f": {"base64": "?"}}).as_object().unwrap(), &Value::Null, "B").is_err());
    }
}
