//! Reads lines from a child, up to a maximum length.

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

pub(super) struct LineReader<R> {
    reader: BufReader<R>,
    limit: usize,
}

#[derive(Debug)]
pub(super) enum NextLine {
    Line(Bytes),
    TooLong,
    End,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader), limit }
    }

    /// Returns the next line without its terminator.
    pub(super) async fn next(&mut self) -> NextLine {
        let mut line = Vec::new();
        let mut limited = (&mut self.reader).take(self.limit as u64 + 1);
        if limited.read_until(b'\n', &mut line).await.is_err() || line.is_empty() {
            return NextLine::End;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > self.limit {
            return NextLine::TooLong;
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        NextLine::Line(line.into())
    }

    /// Returns the next line, truncated at the limit; the rest is skipped.
    pub(super) async fn next_truncated(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let mut limited = (&mut self.reader).take(self.limit as u64);
        if limited.read_until(b'\n', &mut line).await.ok()? == 0 {
            return None;
        }
        if line.last() != Some(&b'\n') {
            self.skip_line().await;
        }
        Some(String::from_utf8_lossy(line.trim_ascii_end()).into_owned())
    }

    async fn skip_line(&mut self) {
        while let Ok(chunk) = self.reader.fill_buf().await {
            if chunk.is_empty() {
                return;
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let seen = end.map_or(chunk.len(), |at| at + 1);
            self.reader.consume(seen);
            if end.is_some() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_end_at_breaks_and_at_the_limit() {
        let mut lines = LineReader::new(&b"one\r\n\ntwo\nlonger than ten\nthree"[..], 10);
        assert!(matches!(lines.next().await, NextLine::Line(line) if line == "one"));
        assert!(matches!(lines.next().await, NextLine::Line(line) if line.is_empty()));
        assert!(matches!(lines.next().await, NextLine::Line(line) if line == "two"));
        assert!(matches!(lines.next().await, NextLine::TooLong));
        let mut cut = LineReader::new(&b"longer than ten\nthree"[..], 10);
        assert_eq!(cut.next_truncated().await.as_deref(), Some("longer tha"));
        assert_eq!(cut.next_truncated().await.as_deref(), Some("three"));
        assert_eq!(cut.next_truncated().await, None);
    }
}
