//! Encoder and decoder of server-sent events.

use bytes::{Buf, Bytes, BytesMut};

/// One received event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its type; `None` for a message.
    pub name: Option<String>,
    pub id: Option<String>,
    pub retry_ms: Option<u64>,
    pub data: Bytes,
}

/// Encodes an event whose data is one line.
pub fn encode_event(id: Option<&str>, data: &[u8]) -> Bytes {
    let mut text = BytesMut::with_capacity(data.len() + 64);
    if let Some(id) = id {
        text.extend_from_slice(b"id: ");
        text.extend_from_slice(id.as_bytes());
        text.extend_from_slice(b"\n");
    }
    text.extend_from_slice(b"event: message\ndata: ");
    text.extend_from_slice(data);
    text.extend_from_slice(b"\n\n");
    text.freeze()
}

/// Event without a message: gives the client an id to resume from and a delay before it does.
pub fn encode_priming(id: &str, retry_ms: u64) -> Bytes {
    format!("id: {id}\nretry: {retry_ms}\ndata: \n\n").into()
}

/// Keep-alive comment for a quiet stream.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Decodes events from chunks of any size. An event above the limit is an error.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    /// Where the search for the next line end continues.
    scanned: usize,
    event: Event,
    /// Lines of the event's data so far.
    data: BytesMut,
    has_data: bool,
    limit: usize,
}

/// An event exceeded the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineTooLong;

impl Decoder {
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            event: Event::default(),
            data: BytesMut::new(),
            has_data: false,
            limit,
        }
    }

    pub fn push(&mut self, chunk: &[u8]) -> Result<(), LineTooLong> {
        self.buffer.extend_from_slice(chunk);
        if self.size() > self.limit { Err(LineTooLong) } else { Ok(()) }
    }

    /// Bytes that are kept until the event is complete.
    pub fn size(&self) -> usize {
        self.buffer.len() + self.data.len()
    }

    /// Makes room for an event of this size, so that it is not copied as it grows.
    pub fn reserve(&mut self, size: usize) {
        let growing = if self.has_data { &mut self.data } else { &mut self.buffer };
        growing.reserve(size.saturating_sub(growing.len()));
    }

    /// Returns the next complete event, if any.
    pub fn next_event(&mut self) -> Option<Event> {
        while let Some(line) = self.line() {
            if line.is_empty() {
                if self.has_data || self.event.id.is_some() || self.event.retry_ms.is_some() {
                    self.has_data = false;
                    self.event.data = std::mem::take(&mut self.data).freeze();
                    return Some(std::mem::take(&mut self.event));
                }
                self.event.name = None;
                continue;
            }
            self.field(line);
        }
        None
    }

    fn line(&mut self) -> Option<BytesMut> {
        let fresh = self.buffer.get(self.scanned..)?;
        let Some(found) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.scanned = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.scanned + found + 1);
        self.scanned = 0;
        line.truncate(line.len() - 1);
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        Some(line)
    }

    fn field(&mut self, mut line: BytesMut) {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let mut value = line.split_off((colon + 1).min(line.len()));
        if value.first() == Some(&b' ') {
            value.advance(1);
        }
        match line.get(..colon) {
            Some(b"data") => self.append_data(value),
            Some(b"event") => self.event.name = std::str::from_utf8(&value).ok().map(str::to_owned),
            Some(b"id") => self.event.id = std::str::from_utf8(&value).ok().map(str::to_owned),
            Some(b"retry") => {
                self.event.retry_ms = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
            }
            _ => {}
        }
    }

    /// A single line is not copied.
    fn append_data(&mut self, value: BytesMut) {
        if self.has_data {
            self.data.extend_from_slice(b"\n");
            self.data.extend_from_slice(&value);
        } else {
            self.data = value;
        }
        self.has_data = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&str]) -> Vec<Event> {
        let mut decoder = Decoder::new(1 << 20);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk.as_bytes()).unwrap();
            while let Some(event) = decoder.next_event() {
                events.push(event);
            }
        }
        events
    }

    #[test]
    fn reads_what_it_writes_in_chunks_of_any_size() {
        let mut text = encode_priming("1/0", 500).to_vec();
        text.extend_from_slice(&encode_event(Some("1/1"), b"{\"a\":1}"));
        text.extend_from_slice(KEEP_ALIVE);
        text.extend_from_slice(&encode_event(None, b"x"));
        let text = String::from_utf8(text).unwrap();
        let whole = read(&[&text]);
        let bytes: Vec<String> = text.chars().map(String::from).collect();
        let single: Vec<&str> = bytes.iter().map(String::as_str).collect();
        assert_eq!(whole, read(&single));
        assert_eq!(whole.len(), 3);
        assert_eq!(whole[0], Event { id: Some("1/0".into()), retry_ms: Some(500), ..Event::default() });
        assert_eq!(whole[1].data, "{\"a\":1}".as_bytes());
    }

    #[test]
    fn joins_lines_and_accepts_crlf() {
        let events = read(&["data: a\r\ndata:b\r\nid: 7\r\n\r\n", "data"]);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].data, "a\nb".as_bytes());
        assert_eq!(events[0].id.as_deref(), Some("7"));
    }

    #[test]
    fn a_line_without_end_stops_at_the_limit() {
        let mut decoder = Decoder::new(10);
        assert_eq!(decoder.push(&[b'x'; 11]), Err(LineTooLong));
    }

    #[test]
    fn many_lines_are_joined_within_the_limit() {
        const LINES: usize = 200_000;
        let mut decoder = Decoder::new(LINES * 4);
        for number in 0..LINES {
            decoder.push(format!("data: {}\n", number % 10).as_bytes()).unwrap();
            assert_eq!(decoder.next_event(), None);
        }
        decoder.push(b"\ndata: last\n\n").unwrap();
        let expected: Vec<String> = (0..LINES).map(|number| (number % 10).to_string()).collect();
        assert_eq!(decoder.next_event().unwrap().data, expected.join("\n").as_bytes());
        assert_eq!(decoder.next_event().unwrap().data, "last".as_bytes());
    }

    #[test]
    fn lines_of_one_event_count_together() {
        let mut decoder = Decoder::new(20);
        for (line, fits) in [("data: 12345678\n", true), ("data: 90\n", true), ("data: 123\n", false)] {
            assert_eq!(decoder.push(line.as_bytes()).is_ok(), fits, "{line}");
            assert_eq!(decoder.next_event(), None);
        }
    }
}
