//! Lines of a text: counting, splitting, endings. A trailing newline does not start another line.

/// Number of lines of a text.
pub fn count(text: &str) -> u64 {
    let ends = text.bytes().filter(|byte| *byte == b'\n').count() as u64;
    ends + u64::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Line number of a byte offset, from 1.
pub fn number_at(text: &str, offset: usize) -> u64 {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1
}

/// Lines with their endings.
pub fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// A line without its ending.
pub fn without_ending(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineEnding {
    #[default]
    Lf,
    Crlf,
}

impl LineEnding {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::Crlf => "\r\n",
        }
    }

    /// The only line ending of the text; `None` if it has both or none.
    pub fn uniform(text: &str) -> Option<Self> {
        match count_endings(text) {
            (0, 0) => None,
            (_, 0) => Some(Self::Lf),
            (0, _) => Some(Self::Crlf),
            _ => None,
        }
    }

    /// The most frequent line ending.
    pub fn dominant(text: &str) -> Self {
        let (lf, crlf) = count_endings(text);
        if crlf > lf { Self::Crlf } else { Self::Lf }
    }

    /// Converts all lines to this ending.
    pub fn apply_to(self, text: &str) -> String {
        let folded = text.replace("\r\n", "\n");
        if self == Self::Crlf { folded.replace('\n', "\r\n") } else { folded }
    }
}

fn count_endings(text: &str) -> (usize, usize) {
    let all = text.bytes().filter(|byte| *byte == b'\n').count();
    let crlf = text.matches("\r\n").count();
    (all - crlf, crlf)
}

/// Quotes a line for a message: shortened, on one line, with invisible characters escaped.
pub fn quote_line(line: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 120;
    let line = without_ending(line);
    let mut cut: String = line.chars().take(MAX_SHOWN_CHARS).collect();
    if cut.len() < line.len() {
        cut.push('…');
    }
    format!("{cut:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailing_newline_makes_no_extra_line() {
        let rows = [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\n\n", 2), ("\n", 1), ("a\r\nb\r\n", 2)];
        for (text, lines) in rows {
            assert_eq!(count(text), lines, "{text:?}");
            assert_eq!(split(text).len() as u64, lines, "{text:?}");
        }
    }

    #[test]
    fn endings() {
        assert_eq!(LineEnding::uniform("a\r\nb\r\n"), Some(LineEnding::Crlf));
        assert_eq!(LineEnding::uniform("a\r\nb\n"), None);
        assert_eq!(LineEnding::dominant("a\r\nb\r\nc\n"), LineEnding::Crlf);
        assert_eq!(LineEnding::dominant("a"), LineEnding::Lf);
        assert_eq!(LineEnding::Crlf.apply_to("a\nb\r\nc\rd"), "a\r\nb\r\nc\rd");
        assert_eq!(LineEnding::Lf.apply_to("a\r\nb\r"), "a\nb\r");
        assert_eq!(without_ending("a\r\n"), "a");
        assert_eq!(number_at("a\nb\nc", 4), 3);
    }
}
