//! Reads lines from a child, up to a maximum length.

use crate::error::UpstreamError;
use crate::transport::message_memory::ReceiveLimit;
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
    TooSlow(UpstreamError),
    End,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader), limit }
    }

    /// Returns the next line without its terminator.
    pub(super) async fn next(&mut self, limit: &ReceiveLimit) -> NextLine {
        let (mut line, mut memory) = (Vec::new(), limit.next_message());
        loop {
            let chunk = match memory.receive(self.reader.fill_buf()).await {
                Ok(Ok(chunk)) => chunk,
                Ok(Err(_)) => return NextLine::End,
                Err(why) => return NextLine::TooSlow(why),
            };
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            if chunk.is_empty() && line.is_empty() {
                return NextLine::End;
            }
            let is_last = end.is_some() || chunk.is_empty();
            if memory.reserve(line.len() + part.len(), None).await.is_err() {
                return NextLine::TooLong;
            }
            if let Some(capacity) = memory.capacity().filter(|capacity| line.capacity() < *capacity) {
                line.reserve_exact(capacity - line.len());
            }
            line.extend_from_slice(part);
            let read = part.len() + usize::from(end.is_some());
            self.reader.consume(read);
            if is_last {
                break;
            }
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        NextLine::Line(memory.hold(line.into()))
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
    use crate::transport::message_memory::MessageMemory;

    #[tokio::test]
    async fn lines_end_at_breaks_and_at_the_limit() {
        let limit = ReceiveLimit::new(10, MessageMemory::new());
        let mut lines = LineReader::new(&b"one\r\n\ntwo\nlonger than ten\nthree"[..], 10);
        assert!(matches!(lines.next(&limit).await, NextLine::Line(line) if line == "one"));
        assert!(matches!(lines.next(&limit).await, NextLine::Line(line) if line.is_empty()));
        assert!(matches!(lines.next(&limit).await, NextLine::Line(line) if line == "two"));
        assert!(matches!(lines.next(&limit).await, NextLine::TooLong));
        let mut cut = LineReader::new(&b"longer than ten\nthree"[..], 10);
        assert_eq!(cut.next_truncated().await.as_deref(), Some("longer tha"));
        assert_eq!(cut.next_truncated().await.as_deref(), Some("three"));
        assert_eq!(cut.next_truncated().await, None);
    }
}
