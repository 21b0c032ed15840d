//! Lines from a child, none longer than the limit.

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

pub(super) struct Lines<R> {
    reader: BufReader<R>,
    limit: usize,
}

#[derive(Debug)]
pub(super) enum Next {
    Line(Bytes),
    TooLong,
    End,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader), limit }
    }

    /// The next line without its end.
    pub(super) async fn next(&mut self) -> Next {
        let mut line = Vec::new();
        let mut limited = (&mut self.reader).take(self.limit as u64 + 1);
        if limited.read_until(b'\n', &mut line).await.is_err() || line.is_empty() {
            return Next::End;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > self.limit {
            return Next::TooLong;
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Next::Line(line.into())
    }

    /// The next line, cut at the limit; the rest of it is passed over.
    pub(super) async fn next_cut(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let mut limited = (&mut self.reader).take(self.limit as u64);
        if limited.read_until(b'\n', &mut line).await.ok()? == 0 {
            return None;
        }
        if line.last() != Some(&b'\n') {
            self.pass_over().await;
        }
        Some(String::from_utf8_lossy(line.trim_ascii_end()).into_owned())
    }

    async fn pass_over(&mut self) {
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
        let mut lines = Lines::new(&b"one\r\n\ntwo\nlonger than ten\nthree"[..], 10);
        assert!(matches!(lines.next().await, Next::Line(line) if line == "one"));
        assert!(matches!(lines.next().await, Next::Line(line) if line.is_empty()));
        assert!(matches!(lines.next().await, Next::Line(line) if line == "two"));
        assert!(matches!(lines.next().await, Next::TooLong));
        let mut cut = Lines::new(&b"longer than ten\nthree"[..], 10);
        assert_eq!(cut.next_cut().await.as_deref(), Some("longer tha"));
        assert_eq!(cut.next_cut().await.as_deref(), Some("three"));
        assert_eq!(cut.next_cut().await, None);
    }
}
