//! Numbers in summary lines.

/// The number in front of a word: 3 in `1 passed, 3 failed` for `failed`.
pub fn number_before(line: &str, word: &str) -> Option<u64> {
    let mut last: Option<u64> = None;
    for part in line.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '|' | '(' | ')')) {
        if part.is_empty() {
            continue;
        }
        if part == word
            && let Some(number) = last
        {
            return Some(number);
        }
        last = part.parse().ok();
    }
    None
}

/// Seconds in `1.25s`, `327ms`, `2m 3s`, `1.5 s`.
pub fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let mut sum: Option<f64> = None;
    let mut rest = text;
    while let Some(digit) = rest.find(|c: char| c.is_ascii_digit()) {
        let number = rest.get(digit..)?;
        let end = number.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(number.len());
        let (value, behind) = number.split_at_checked(end)?;
        let value: f64 = value.parse().ok()?;
        let unit = behind.trim_start();
        let letters = unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len());
        let (unit, behind) = unit.split_at_checked(letters)?;
        let scale = match unit {
            "ms" => 0.001,
            "" | "s" | "sec" | "seconds" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            _ => return sum,
        };
        sum = Some(sum.unwrap_or(0.0) + value * scale);
        rest = behind;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_before_their_word() {
        let line = "3 failed, 12 passed; 1 ignored | 2 todo (18)";
        let rows =
            [("failed", Some(3)), ("passed", Some(12)), ("ignored", Some(1)), ("todo", Some(2)), ("x", None)];
        for (word, number) in rows {
            assert_eq!(number_before(line, word), number, "{word}");
        }
    }

    #[test]
    fn times_are_seconds() {
        let rows = [
            ("1.5s", Some(1.5)),
            ("250ms", Some(0.25)),
            ("2m 3s", Some(123.0)),
            ("0.5 s", Some(0.5)),
            ("x", None),
        ];
        for (text, time) in rows {
            assert_eq!(seconds(text), time, "{text}");
        }
    }
}
