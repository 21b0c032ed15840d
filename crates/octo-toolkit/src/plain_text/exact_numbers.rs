//! Numbers that a parser would change.

use octo_model::quote_numbers;
use serde_json::Number;
use std::borrow::Cow;

/// Shorter integers are always exact.
const MAX_PLAIN_DIGITS: usize = 15;

/// JSON in which numbers that would be rounded or written differently, such as `1.10`, are texts of the same digits.
pub(super) fn quote_inexact_numbers(json: &str) -> Cow<'_, str> {
    quote_numbers(json, |number| !is_exact(number))
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
