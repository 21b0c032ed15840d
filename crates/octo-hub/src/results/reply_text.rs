//! Reading parts of a stored text: a read needs no more memory than the part it returns.

use octo_ports::{ReadSeek, StoredText};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// Reads the lines of a text, keeping only a part in memory.
pub struct LineReader(BufReader<Box<dyn ReadSeek>>);

/// A line, or the requested part of it.
pub struct TextLine {
    pub prefix: Vec<u8>,
    pub bytes: usize,
    /// Whether a newline follows.
    pub is_ended: bool,
}

impl LineReader {
    pub fn new(reader: Box<dyn ReadSeek>) -> Self {
        Self(BufReader::with_capacity(64 << 10, reader))
    }

    /// Returns up to `keep` bytes of the next line; `see` receives all pieces of it.
    pub fn next(&mut self, keep: usize, mut see: impl FnMut(&[u8])) -> io::Result<Option<TextLine>> {
        let mut line = TextLine { prefix: Vec::new(), bytes: 0, is_ended: false };
        let mut any = false;
        loop {
            let buffer = self.0.fill_buf()?;
            if buffer.is_empty() {
                return Ok(any.then_some(line));
            }
            any = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let piece = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            see(piece);
            let room = keep.saturating_sub(line.prefix.len()).min(piece.len());
            line.prefix.extend_from_slice(piece.get(..room).unwrap_or_default());
            line.bytes += piece.len();
            let used = piece.len() + usize::from(end.is_some());
            self.0.consume(used);
            if end.is_some() {
                line.is_ended = true;
                return Ok(Some(line));
            }
        }
    }
}

/// Reads a range of bytes, aligned to character boundaries, and returns where the next one starts.
pub fn read_range(text: &mut StoredText, from: u64, length: usize) -> io::Result<(String, Option<u64>)> {
    let start = from.min(text.size.bytes);
    text.reader.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    text.reader.by_ref().take(length as u64 + 8).read_to_end(&mut bytes)?;
    let continues = |byte: &u8| *byte & 0xc0 == 0x80;
    let skipped = bytes.iter().take_while(|byte| continues(byte)).count();
    let want = (skipped + length).min(bytes.len());
    let end = (skipped..=want).rev().find(|at| bytes.get(*at).is_none_or(|byte| !continues(byte)));
    let end = end.unwrap_or(skipped);
    let shown = String::from_utf8_lossy(bytes.get(skipped..end).unwrap_or_default()).into_owned();
    let next = start + end as u64;
    Ok((shown, (next < text.size.bytes).then_some(next)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Json;
    use serde_json::json;

    #[test]
    fn ranges_begin_and_end_with_characters() {
        let whole =
            Json::parse(json!({"content": [{"type": "text", "text": "aéé😀b"}]}).to_string()).unwrap();
        for from in 0..12 {
            for length in 0..12 {
                let mut text = StoredText::render(&whole).unwrap();
                let (part, next) = read_range(&mut text, from, length).unwrap();
                assert!("aéé😀b".contains(&part) && !part.contains('\u{fffd}'), "{from} {length} {part}");
                assert!(next.is_none_or(|next| next >= from && next < text.size.bytes));
            }
        }
    }
}
