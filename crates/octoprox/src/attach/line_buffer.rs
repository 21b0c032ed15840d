//! Splits what arrives into lines of limited length.

/// Memory that an empty buffer keeps.
const KEPT_CAPACITY: usize = 64 << 10;

pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Bytes that hold no line end.
    scanned: usize,
    max_line: usize,
    is_skipping: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// With its line end.
    Complete(Vec<u8>),
    /// It was longer than the limit and has been dropped.
    TooLong,
}

impl LineBuffer {
    pub fn new(max_line: usize) -> Self {
        Self { bytes: Vec::new(), scanned: 0, max_line, is_skipping: false }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next complete line.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let unseen = self.bytes.get(self.scanned..).unwrap_or_default();
            let Some(end) = unseen.iter().position(|byte| *byte == b'\n') else {
                self.scanned = self.bytes.len();
                if self.scanned > self.max_line {
                    self.is_skipping = true;
                    self.bytes.clear();
                    self.scanned = 0;
                }
                self.release_memory();
                return None;
            };
            let rest = self.bytes.split_off(self.scanned + end + 1);
            let line = std::mem::replace(&mut self.bytes, rest);
            self.scanned = 0;
            if std::mem::take(&mut self.is_skipping) || line.len() > self.max_line + 1 {
                return Some(Line::TooLong);
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(Line::Complete(line));
            }
        }
    }

    /// Returns a last line without an end, with one.
    pub fn last_line(&mut self) -> Option<Line> {
        (!self.bytes.is_empty() || self.is_skipping).then(|| self.push(b"\n"))?;
        self.next_line()
    }

    fn release_memory(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_CAPACITY {
            self.bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole() {
        let complete = |text: &str| Some(Line::Complete(text.as_bytes().to_vec()));
        let mut buffer = LineBuffer::new(8);
        buffer.push(b"one\n\n  \ntw");
        assert_eq!(buffer.next_line(), complete("one\n"));
        assert_eq!(buffer.next_line(), None);
        buffer.push(b"o\n12345678\n123456789\nthree\n");
        assert_eq!(buffer.next_line(), complete("two\n"));
        assert_eq!(buffer.next_line(), complete("12345678\n"));
        assert_eq!(buffer.next_line(), Some(Line::TooLong));
        assert_eq!(buffer.next_line(), complete("three\n"));
        for _ in 0..5 {
            buffer.push(b"12345");
            assert_eq!(buffer.next_line(), None);
            assert!(buffer.bytes.len() <= 8);
        }
        buffer.push(b"\nfour");
        assert_eq!(buffer.next_line(), Some(Line::TooLong));
        assert_eq!(buffer.next_line(), None);
        assert_eq!(buffer.last_line(), complete("four\n"));
        assert_eq!(buffer.last_line(), None);
    }
}
