//! A text as words: lower case, without punctuation, with `3pm`, `2h30m` and `5-mar-2027` split.

use super::vocabulary;

/// The words of a text and the current position.
#[derive(Debug, Clone)]
pub struct WordCursor {
    words: Vec<String>,
    position: usize,
}

impl WordCursor {
    pub fn new(text: &str) -> Self {
        let mut words = Vec::new();
        for piece in normalize(text).split_whitespace() {
            tokenize(piece, &mut words);
        }
        Self { words, position: 0 }
    }

    pub fn peek(&self) -> Option<&str> {
        self.peek_at(0)
    }

    pub fn peek_at(&self, by: usize) -> Option<&str> {
        self.words.get(self.position + by).map(String::as_str)
    }

    pub fn is_done(&self) -> bool {
        self.position >= self.words.len()
    }

    pub fn skip(&mut self, count: usize) {
        self.position += count;
    }

    pub fn mark(&self) -> usize {
        self.position
    }

    pub fn reset_to(&mut self, mark: usize) {
        self.position = mark;
    }

    /// The words taken since the mark, as text.
    pub fn text_since(&self, mark: usize) -> String {
        self.words.get(mark..self.position).unwrap_or_default().join(" ")
    }

    /// Takes one word if it is among these.
    pub fn take(&mut self, any: &[&str]) -> bool {
        let found = self.peek().is_some_and(|word| any.contains(&word));
        self.position += usize::from(found);
        found
    }

    /// Takes these words if they follow in this order.
    pub fn take_all(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(by, word)| self.peek_at(by) == Some(word));
        self.position += if found { words.len() } else { 0 };
        found
    }

    /// Takes one word if the function accepts it.
    pub fn take_map<T>(&mut self, known: impl Fn(&str) -> Option<T>) -> Option<T> {
        let found = known(self.peek()?)?;
        self.position += 1;
        Some(found)
    }

    /// Removes words at any position.
    pub fn remove(&mut self, from: usize, count: usize) -> String {
        let end = from.saturating_add(count).min(self.words.len());
        if from >= end {
            return String::new();
        }
        self.words.drain(from..end).collect::<Vec<_>>().join(" ")
    }

    /// Splits `+3`, once it is clear that it is not an offset.
    pub fn split_signs(&mut self) {
        let words = std::mem::take(&mut self.words);
        self.words = words.into_iter().flat_map(split_sign).collect();
    }

    pub fn all(&self) -> &[String] {
        &self.words
    }
}

fn split_sign(word: String) -> Vec<String> {
    match word.split_at_checked(1) {
        Some((sign @ ("+" | "-"), rest)) if !rest.is_empty() => vec![sign.to_owned(), rest.to_owned()],
        _ => vec![word],
    }
}

/// Normalizes dashes and quotes; commas, and dots that are not decimal points, become spaces or are dropped.
fn normalize(text: &str) -> String {
    let chars: Vec<char> = strip_zone_remark(text).chars().collect();
    let mut normalized = String::with_capacity(text.len());
    for (index, &c) in chars.iter().enumerate() {
        let digit = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(char::is_ascii_digit);
        match c {
            ',' | ';' | '(' | ')' | '"' => normalized.push(' '),
            '@' => normalized.push_str(" at "),
            '.' if !(digit(index.checked_sub(1)) && digit(index.checked_add(1))) => {}
            '\u{2018}' | '\u{2019}' => normalized.push('\''),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => normalized.push('-'),
            _ => normalized.extend(c.to_lowercase()),
        }
    }
    normalized
}

/// Strips the second zone of `… GMT+0100 (Central European Standard Time)`, as printed by JavaScript.
fn strip_zone_remark(text: &str) -> &str {
    let Some((before, _)) = text.trim_end().strip_suffix(')').and_then(|text| text.split_once('(')) else {
        return text;
    };
    let offset = before.split_whitespace().next_back().unwrap_or_default();
    let has_offset = offset.contains(['+', '-']) && offset.ends_with(|c: char| c.is_ascii_digit());
    if has_offset { before } else { text }
}

fn tokenize(piece: &str, words: &mut Vec<String>) {
    let piece = piece.trim_matches('\'');
    if let Some((date, time)) = date_and_time(piece) {
        words.push(date.to_owned());
        tokenize(time, words);
    } else if let Some((time, offset)) = time_and_offset(piece) {
        tokenize(time, words);
        words.push(offset.to_owned());
    } else if is_joined(piece) {
        piece.split(['-', '/']).for_each(|part| tokenize(part, words));
    } else if piece.contains('/') {
        words.push(piece.to_owned());
    } else {
        split_digits(piece, words);
    }
}

/// `2026-11-14t22:00`, which is not quite ISO 8601.
fn date_and_time(piece: &str) -> Option<(&str, &str)> {
    let (date, time) = piece.split_once('t')?;
    let is_date =
        date.len() >= 8 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'/');
    (is_date && time.starts_with(|c: char| c.is_ascii_digit())).then_some((date, time))
}

/// `14:30+02:00`.
fn time_and_offset(piece: &str) -> Option<(&str, &str)> {
    let colon = piece.find(':')?;
    let sign = piece.find(['+', '-'])?;
    (colon < sign && piece.starts_with(|c: char| c.is_ascii_digit()))
        .then(|| piece.split_at_checked(sign))
        .flatten()
}

/// `5-mar-2027`, `5/mar/2027`, `day-after-tomorrow`; not `2027-03-05`, `utc-5` or `europe/berlin`.
fn is_joined(piece: &str) -> bool {
    let parts: Vec<&str> = piece.split(['-', '/']).collect();
    let letters = |part: &&str| !part.is_empty() && part.chars().all(char::is_alphabetic);
    let hyphenated = !piece.contains('/') && parts.iter().all(letters);
    parts.len() > 1 && (hyphenated || parts.iter().any(|part| vocabulary::month(part).is_some()))
}

/// `3pm` becomes `3` `pm`, `2h30m` becomes `2` `h` `30` `m`; `5th` is not split.
fn split_digits(piece: &str, words: &mut Vec<String>) {
    let mut part = String::new();
    for c in piece.chars() {
        let was_digit = part.ends_with(|c: char| c.is_ascii_digit());
        let was_letter = part.ends_with(char::is_alphabetic);
        if (was_digit && c.is_alphabetic()) || (was_letter && c.is_ascii_digit()) {
            words.push(std::mem::take(&mut part));
        }
        part.push(c);
    }
    if matches!(part.as_str(), "st" | "nd" | "rd" | "th") && part.len() < piece.len() {
        if let Some(number) = words.last_mut() {
            number.push_str(&part);
        }
    } else if !part.is_empty() {
        words.push(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let rows = [
            ("Tomorrow at 3pm", "tomorrow|at|3|pm"),
            ("3:30 p.m., tomorrow", "3:30|pm|tomorrow"),
            ("March 5th, 2027", "march|5th|2027"),
            ("5-Mar-2027", "5|mar|2027"),
            ("5. Sept. 2027", "5|sept|2027"),
            ("2027-03-05 14:30+02:00", "2027-03-05|14:30|+02:00"),
            ("2027-03-05T25:00", "2027-03-05|25:00"),
            ("1.5 hours ago", "1.5|hours|ago"),
            ("2h30m ago", "2|h|30|m|ago"),
            ("9:00 Europe/Berlin", "9:00|europe/berlin"),
            ("9:00 UTC+2", "9:00|utc+2"),
            ("in 3 days’ time", "in|3|days|time"),
            ("the day-after-tomorrow", "the|day|after|tomorrow"),
            ("friday@5pm", "friday|at|5|pm"),
            (
                "Sat Nov 14 2026 22:00:00 GMT+0100 (Central European Standard Time)",
                "sat|nov|14|2026|22:00:00|gmt+0100",
            ),
            ("14:30 (UTC)", "14:30|utc"),
            ("5/3/2027", "5/3/2027"),
            ("2019/Sep/01", "2019|sep|01"),
            (" \u{a0}, . ' ", ""),
        ];
        for (text, words) in rows {
            assert_eq!(WordCursor::new(text).all().join("|"), words, "{text}");
        }
    }
}
