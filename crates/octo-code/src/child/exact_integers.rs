//! Integers of JSON that JavaScript would round.

use octo_model::quote_numbers;
use std::borrow::Cow;

/// `Number.MAX_SAFE_INTEGER`.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Valid JSON in which integers that a number of JavaScript cannot hold are texts, so that ids stay what they are.
pub fn exact_integers(json: &str) -> Cow<'_, str> {
    quote_numbers(json, is_rounded)
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
