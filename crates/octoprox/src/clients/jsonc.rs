//! JSON with comments and trailing commas, as editors write it.

/// JSON with comments blanked out. The length is unchanged, so offsets match the original.
pub struct StrippedJsonc {
    pub text: String,
    /// Offsets of trailing commas.
    pub trailing_commas: Vec<usize>,
}

/// Blanks out comments, the byte order mark and trailing commas.
pub fn strip_comments(text: &str) -> StrippedJsonc {
    let mut bytes = text.as_bytes().to_vec();
    let mut trailing = Vec::new();
    let mut comma = None;
    let mut at = 0;
    if text.starts_with('\u{feff}') {
        at = blank(&mut bytes, 0, 3);
    }
    while let Some(byte) = bytes.get(at).copied() {
        match (byte, bytes.get(at + 1)) {
            (b'"', _) => {
                comma = None;
                at = string_end(&bytes, at);
                continue;
            }
            (b'/', Some(b'/')) => {
                let rest = bytes.iter().skip(at);
                let length = rest.take_while(|byte| !matches!(byte, b'\n' | b'\r')).count();
                at = blank(&mut bytes, at, at + length);
                continue;
            }
            (b'/', Some(b'*')) => {
                let inside = text.get(at + 2..).unwrap_or_default();
                let end = inside.find("*/").map_or(bytes.len(), |length| at + 2 + length + 2);
                at = blank(&mut bytes, at, end);
                continue;
            }
            (b',', _) => comma = Some(at),
            (b'}' | b']', _) => {
                if let Some(comma) = comma.take() {
                    blank(&mut bytes, comma, comma + 1);
                    trailing.push(comma);
                }
            }
            (b' ' | b'\t' | b'\n' | b'\r', _) => {}
            _ => comma = None,
        }
        at += 1;
    }
    StrippedJsonc { text: String::from_utf8(bytes).unwrap_or_default(), trailing_commas: trailing }
}

/// Overwrites a range with spaces, except newlines. Returns its end.
fn blank(bytes: &mut [u8], from: usize, to: usize) -> usize {
    for byte in bytes.iter_mut().take(to).skip(from).filter(|byte| !matches!(**byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    to
}

/// Returns the offset after the string that begins at `at`.
pub fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut escaped = false;
    for (offset, byte) in bytes.iter().enumerate().skip(at + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return offset + 1,
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn only_json_is_left_and_nothing_moves() {
        let whole = json!({"a": "x // y /* z */ ,}", "b": [1, {"c": "\\\","}]});
        for text in [
            r#"{"a": "x // y /* z */ ,}", "b": [1, {"c": "\\\","}]}"#,
            "\u{feff}{\"a\": \"x // y /* z */ ,}\", // first, über\n \"b\": [1, {\"c\": \"\\\\\\\",\",},],\n}",
            "/* head\n, } */{\"a\": \"x // y /* z */ ,}\",\r\n\"b\": [1, {\"c\": \"\\\\\\\",\"} // end ,\n]}",
        ] {
            let plain = strip_comments(text);
            assert_eq!(plain.text.len(), text.len(), "{text}");
            assert_eq!(serde_json::from_str::<Value>(&plain.text).ok(), Some(whole.clone()), "{text}");
            assert!(plain.trailing_commas.iter().all(|at| text.as_bytes()[*at] == b','));
        }
        for broken in ["{\"a", "/*", "{\"a\\", ""] {
            assert_eq!(strip_comments(broken).text.len(), broken.len());
        }
    }
}
