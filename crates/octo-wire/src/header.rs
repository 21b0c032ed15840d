//! HTTP headers of the protocol, and the encoding of values that are not header-safe.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

pub const SESSION: &str = "mcp-session-id";
pub const REVISION: &str = "mcp-protocol-version";
pub const METHOD: &str = "mcp-method";
pub const NAME: &str = "mcp-name";
pub const PARAM: &str = "mcp-param-";
pub const LAST_EVENT: &str = "last-event-id";

const BASE64_PREFIX: &str = "=?base64?";
const BASE64_SUFFIX: &str = "?=";

/// Encodes a value for a header.
pub fn encode(value: &str) -> String {
    let safe = value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let bare = !value.starts_with(BASE64_PREFIX) && value.trim() == value;
    if safe && bare {
        value.to_owned()
    } else {
        format!("{BASE64_PREFIX}{}{BASE64_SUFFIX}", STANDARD.encode(value))
    }
}

/// Decodes a header value; `None` if its encoding is invalid.
pub fn decode(value: &str) -> Option<String> {
    match value.strip_prefix(BASE64_PREFIX).and_then(|rest| rest.strip_suffix(BASE64_SUFFIX)) {
        None => Some(value.to_owned()),
        Some(encoded) => STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_survives() {
        for value in ["plain", "", " lead", "trail ", "é", "a\nb", "=?base64?x?=", "tab\tin"] {
            let encoded = encode(value);
            assert!(encoded.is_ascii() && !encoded.contains('\n'), "{value:?}");
            assert_eq!(decode(&encoded).as_deref(), Some(value));
        }
        assert_eq!(decode("=?base64?!!?="), None);
    }
}
