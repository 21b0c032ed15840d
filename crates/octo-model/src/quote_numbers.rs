//! Numbers that a reader of the JSON would change.

use std::borrow::Cow;

/// JSON in which some numbers are texts of the same digits.
pub fn quote_numbers(json: &str, must_quote: impl Fn(&str) -> bool) -> Cow<'_, str> {
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
        if must_quote(number) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_outside_of_strings_are_quoted() {
        for (json, expected) in [
            ("", ""),
            ("true", "true"),
            ("12", r#""12""#),
            (r#"{"a":12,"b":[-1.5e+3,null]}"#, r#"{"a":"12","b":["-1.5e+3",null]}"#),
            (r#"["7","\"7","\\",7]"#, r#"["7","\"7","\\","7"]"#),
            (r#""no end 7"#, r#""no end 7"#),
        ] {
            assert_eq!(quote_numbers(json, |_| true), expected, "{json}");
        }
        assert!(matches!(quote_numbers("[1,22]", |number| number.len() > 2), Cow::Borrowed(_)));
    }
}
