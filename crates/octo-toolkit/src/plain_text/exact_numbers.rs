//! Numbers that a parser would change.

use serde_json::Number;
use std::borrow::Cow;

/// Shorter integers are always exact.
const MAX_PLAIN_DIGITS: usize = 15;

/// JSON in which numbers that would be rounded or written differently, such as `1.10`, are texts of the same digits.
pub(super) fn quote_inexact_numbers(json: &str) -> Cow<'_, str> {
    let (mut quoted, mut copied) = (String::new(), 0);
    let mut rest = json;
    let position = |rest: &str| json.len() - rest.len();
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = rest.get(start..).unwrap_or_default();
        if let Some(string) = rest.strip_prefix('"') {
            rest = after_string(string);
            continue;
        }
        let is_end = |c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
        let (number, after) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
        if !is_exact(number) {
            quoted.push_str(json.get(copied..position(rest)).unwrap_or_default());
            quoted.push('"');
            quoted.push_str(number);
            quoted.push('"');
            copied = position(after);
        }
        rest = after;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    quoted.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(quoted)
}

/// What follows the string whose opening quote precedes the text.
fn after_string(text: &str) -> &str {
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\\']) {
        let is_end = rest.as_bytes().get(at) == Some(&b'"');
        rest = rest.get(at + if is_end { 1 } else { 2 }..).unwrap_or_default();
        if is_end {
            return rest;
        }
    }
    ""
}

fn is_exact(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    if digits.len() <= MAX_PLAIN_DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return number != "-0";
    }
    serde_json::from_str::<Number>(number).is_ok_and(|read| read.to_string() == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_that_would_change_are_quoted() {
        for (json, quoted) in [
            (r#"{"a":1,"b":-2.5,"c":[18446744073709551615,-9223372036854775808]}"#, None),
            (r#"{"1.10":"1.10 \" 2.0","é\\":[true,null]}"#, None),
            (
                r#"[123456789012345678901, 1.10, -0, 1e3, 7]"#,
                Some(r#"["123456789012345678901", "1.10", "-0", "1e3", 7]"#),
            ),
            ("1.0000000000000000001", Some(r#""1.0000000000000000001""#)),
            ("", None),
            (r#""open"#, None),
        ] {
            assert_eq!(quote_inexact_numbers(json), quoted.unwrap_or(json), "{json}");
        }
    }
}
