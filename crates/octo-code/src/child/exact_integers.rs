//! Integers of JSON that JavaScript would round.

use std::borrow::Cow;

/// `Number.MAX_SAFE_INTEGER`.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Valid JSON in which integers that a number of JavaScript cannot hold are texts, so that ids stay what they are.
pub fn exact_integers(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let (mut changed, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(json, at),
            b'-' | b'0'..=b'9' => {
                let rest = bytes.get(at..).unwrap_or_default();
                let length = rest.iter().take_while(|byte| !b",]} \t\r\n".contains(byte)).count();
                let (before, number) = (json.get(copied..at), json.get(at..at + length));
                if let (Some(before), Some(number)) = (before, number)
                    && is_rounded(number)
                {
                    changed.extend([before, "\"", number, "\""]);
                    copied = at + length;
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    changed.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(changed)
}

/// The position after a string that begins at `start`.
fn string_end(json: &str, start: usize) -> usize {
    let mut at = start + 1;
    while let Some(length) = json.get(at..).and_then(|rest| rest.find('"')) {
        let before = json.as_bytes().get(at..at + length).unwrap_or_default();
        at += length + 1;
        if before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0 {
            return at;
        }
    }
    json.len()
}

fn is_rounded(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    digits.len() >= 16
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && digits.parse::<u64>().map_or(true, |value| value > MAX_SAFE_INTEGER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_would_be_rounded_become_texts() {
        for (json, expected) in [
            ("9007199254740991", "9007199254740991"),
            ("-9007199254740991", "-9007199254740991"),
            ("9007199254740992", r#""9007199254740992""#),
            (r#"{"id":-12345678901234567890123, "n": 1}"#, r#"{"id":"-12345678901234567890123", "n": 1}"#),
            ("[1,9007199254740993\n,9007199254740995]", "[1,\"9007199254740993\"\n,\"9007199254740995\"]"),
            (
                "[1.00000000000000001,1e300,12345678901234567890.5]",
                "[1.00000000000000001,1e300,12345678901234567890.5]",
            ),
            (
                r#"{"9007199254740993":"9007199254740993","\"":"\\"}"#,
                r#"{"9007199254740993":"9007199254740993","\"":"\\"}"#,
            ),
            (r#"["\"",9007199254740993]"#, r#"["\"","9007199254740993"]"#),
        ] {
            assert_eq!(exact_integers(json), expected);
            serde_json::from_str::<serde_json::Value>(&exact_integers(json)).unwrap();
        }
    }
}
