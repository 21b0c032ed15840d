//! Encodings in which a secret may appear in a line.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use std::fmt::Write;

/// Shorter secrets would match ordinary words.
const MIN_SECRET_LEN: usize = 4;
/// Minimum length of an encoded form.
const MIN_ENCODED_LEN: usize = 8;

/// Returns the secret in plain text, JSON-escaped, percent-encoded, in base64 and in hexadecimal, longest first.
pub fn encoded_forms(secret: &str) -> Vec<String> {
    let secret = secret.trim();
    if secret.len() < MIN_SECRET_LEN {
        return Vec::new();
    }
    let mut forms = vec![secret.to_owned(), json_escaped(secret), json_escaped(&json_escaped(secret))];
    for stays in [b"-._~".as_slice(), b""] {
        forms.extend([percent_encoded(secret, stays, true), percent_encoded(secret, stays, false)]);
    }
    forms.push(url::form_urlencoded::byte_serialize(secret.as_bytes()).collect());
    if secret.len() >= MIN_ENCODED_LEN {
        for before in 0..3 {
            forms.extend([base64(&STANDARD, secret, before), base64(&URL_SAFE, secret, before)]);
        }
        forms.extend([hex(secret, false), hex(secret, true)]);
    }
    forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    forms.dedup();
    forms
}

fn json_escaped(secret: &str) -> String {
    let quoted = serde_json::Value::from(secret).to_string();
    quoted.trim_start_matches('"').strip_suffix('"').unwrap_or(&quoted).to_owned()
}

/// Encoders differ in which characters they keep and in the case of hex digits.
fn percent_encoded(secret: &str, stays: &[u8], upper: bool) -> String {
    secret.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || stays.contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = if upper { write!(text, "%{byte:02X}") } else { write!(text, "%{byte:02x}") };
        }
        text
    })
}

fn hex(secret: &str, upper: bool) -> String {
    let text = octo_model::hex(secret.as_bytes());
    if upper { text.to_ascii_uppercase() } else { text }
}

/// Returns the base64 characters that do not depend on the context, if `before` bytes of a group of three precede the
/// secret.
fn base64(engine: &impl Engine, secret: &str, before: usize) -> String {
    let bytes: Vec<u8> = std::iter::repeat_n(0, before).chain(secret.bytes()).collect();
    let text = engine.encode(&bytes);
    let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    text.get(from..to).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_found_wherever_it_begins() {
        let secret = "hunter2-and-more";
        for (before, after) in [("", ""), ("a", ""), ("ab", "c"), ("abc", "cd"), ("user:", "\n")] {
            let line = STANDARD.encode(format!("{before}{secret}{after}"));
            assert!(encoded_forms(secret).iter().any(|form| line.contains(form.as_str())), "{line}");
        }
    }

    #[test]
    fn short_ones_are_left_alone() {
        assert!(encoded_forms("abc").is_empty());
        assert_eq!(encoded_forms("abcd"), ["abcd"]);
    }
}
