//! Stored replies as text. The text is written once, when the reply is stored, and then read in parts: a read
//! needs no more memory than the part it returns.

use crate::{StoreError, StoreResult};
use octo_model::{Json, JsonObject};
use std::io::{self, Cursor, Read, Seek, Write};

/// Maximum growth by indentation; deeper structures are written without it.
const MAX_INDENT_GROWTH: u64 = 4;
const MIN_INDENT_LIMIT_BYTES: u64 = 1 << 20;

/// Marks a stored reply whose text says something else than its structured content.
pub const OWN_TEXT_META_KEY: &str = "octoprox/own_text";

pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// The text of a stored reply.
pub struct StoredText {
    pub reader: Box<dyn ReadSeek>,
    pub size: TextSize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextSize {
    pub lines: u64,
    pub bytes: u64,
}

impl StoredText {
    /// The text of a reply that is entirely in memory.
    pub fn render(whole: &Json) -> StoreResult<Self> {
        let mut text = Vec::new();
        let size = write_text(whole, &mut text).map_err(StoreError::internal)?;
        Ok(Self { reader: Box::new(Cursor::new(text)), size })
    }
}

/// Writes a reply as text: its text blocks, or its indented structure. If most of a structure is a single
/// text, such as the content of a file, only that text is written.
pub fn write_text(whole: &Json, to: &mut dyn Write) -> io::Result<TextSize> {
    let mut to = CountingWriter { to, size: TextSize::default(), last: b'\n' };
    let result = whole.members().unwrap_or_default();
    let structure = result.get("structuredContent");
    if let Some(structure) = structure.filter(|_| result.object("_meta").is_true(OWN_TEXT_META_KEY)) {
        write_blocks(&result, &mut to)?;
        to.write_all(b"\n")?;
        write_structure(structure.as_str(), &mut to)?;
        return Ok(to.finish());
    }
    // A resource or a prompt is shown as its structure.
    match result.get("structuredContent").or_else(|| result.get("content").is_none().then_some(whole)) {
        Some(structure) => match main_text(structure) {
            Some(text) => write_string(string_body(&text), &mut to, |c, to| write!(to, "{c}"))?,
            None => write_structure(structure.as_str(), &mut to)?,
        },
        None => write_blocks(&result, &mut to)?,
    }
    Ok(to.finish())
}

/// The text that makes up most of a structure.
fn main_text(structure: &Json) -> Option<Json> {
    let members = structure.is_object().then(|| structure.members().ok()).flatten()?;
    let texts = members.iter().map(|(_, value)| value).filter(|value| value.as_str().starts_with('"'));
    let longest = texts.max_by_key(|text| text.bytes().len())?;
    (longest.bytes().len() * 2 > structure.bytes().len()).then(|| longest.clone())
}

/// A string without its quotes.
fn string_body(text: &Json) -> &str {
    text.as_str().strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default()
}

struct CountingWriter<'a> {
    to: &'a mut dyn Write,
    size: TextSize,
    last: u8,
}

impl CountingWriter<'_> {
    /// The size, with the last line.
    fn finish(mut self) -> TextSize {
        self.size.lines += u64::from(self.last != b'\n');
        self.size
    }
}

impl Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        let bytes = bytes.get(..written).unwrap_or_default();
        self.size.bytes += written as u64;
        self.size.lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.last = bytes.last().copied().unwrap_or(self.last);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn write_blocks(result: &JsonObject, to: &mut impl Write) -> io::Result<()> {
    for (at, block) in result.list("content").iter().enumerate() {
        if at > 0 {
            to.write_all(b"\n")?;
        }
        let text = block.member("text");
        match text.as_ref().and_then(|text| text.as_str().strip_prefix('"')?.strip_suffix('"')) {
            Some(text) => write_string(text, to, |c, to| write!(to, "{c}"))?,
            None => to.write_all(block.bytes())?,
        }
    }
    Ok(())
}

/// The structure indented by two spaces per level, or not at all if that would be too long.
fn write_structure(text: &str, to: &mut impl Write) -> io::Result<()> {
    let indented = indented_size(text);
    let bound = MIN_INDENT_LIMIT_BYTES.max(MAX_INDENT_GROWTH * text.len() as u64);
    write_indented(text, indented <= bound, to)
}

fn indented_size(text: &str) -> u64 {
    let mut nowhere = io::sink();
    let mut to = CountingWriter { to: &mut nowhere, size: TextSize::default(), last: b'\n' };
    match write_indented(text, true, &mut to) {
        Ok(()) => to.size.bytes,
        Err(_) => u64::MAX,
    }
}

fn write_indented(text: &str, indent: bool, to: &mut impl Write) -> io::Result<()> {
    let mut rest = text;
    let mut depth = 0;
    let line =
        |depth: usize, to: &mut dyn Write| if indent { write!(to, "\n{:1$}", "", 2 * depth) } else { Ok(()) };
    while let Some(first) = rest.bytes().next() {
        let mut tail = rest.get(1..).unwrap_or_default();
        match first {
            b'"' => {
                let end = string_end(tail);
                let (string, after) = tail.split_at_checked(end).unwrap_or((tail, ""));
                to.write_all(b"\"")?;
                write_string(string, to, write_escaped)?;
                to.write_all(b"\"")?;
                tail = after.get(1..).unwrap_or_default();
            }
            b'{' | b'[' => {
                to.write_all(&[first])?;
                let inner = tail.trim_start_matches(JSON_WHITESPACE);
                if let Some(close @ (b'}' | b']')) = inner.bytes().next() {
                    to.write_all(&[close])?;
                    tail = inner.get(1..).unwrap_or_default();
                } else {
                    depth += 1;
                    line(depth, to)?;
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                line(depth, to)?;
                to.write_all(&[first])?;
            }
            b',' => {
                to.write_all(b",")?;
                line(depth, to)?;
            }
            b':' => to.write_all(if indent { b": " } else { b":" })?,
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => {
                let end =
                    rest.find(|c| ",:]}".contains(c) || JSON_WHITESPACE.contains(&c)).unwrap_or(rest.len());
                let (scalar, after) = rest.split_at_checked(end.max(1)).unwrap_or((rest, ""));
                to.write_all(scalar.as_bytes())?;
                tail = after;
            }
        }
        rest = tail;
    }
    Ok(())
}

const JSON_WHITESPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// The end of a string whose opening quote precedes the text.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// Writes the contents of a string; escaped characters are passed to `escaped`.
fn write_string<W: Write>(
    text: &str,
    to: &mut W,
    escaped: impl Fn(char, &mut W) -> io::Result<()>,
) -> io::Result<()> {
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at_checked(at).unwrap_or((rest, ""));
        to.write_all(plain.as_bytes())?;
        let (c, length) = decode_escape(escape);
        escaped(c, to)?;
        rest = escape.get(length..).unwrap_or_default();
    }
    to.write_all(rest.as_bytes())
}

/// Decodes the escape at the start of the text; returns the character and its length.
fn decode_escape(text: &str) -> (char, usize) {
    let unit = |at: usize| text.get(at..at + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match text.as_bytes().get(1) {
        Some(b'n') => ('\n', 2),
        Some(b't') => ('\t', 2),
        Some(b'r') => ('\r', 2),
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(b'u') => match (unit(2).unwrap_or_default(), unit(8)) {
            (high @ 0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => {
                let point = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                (char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
            }
            (point, _) => (char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
        },
        Some(other) if other.is_ascii() => (char::from(*other), 2),
        _ => (char::REPLACEMENT_CHARACTER, text.len().max(1)),
    }
}

fn write_escaped<W: Write>(c: char, to: &mut W) -> io::Result<()> {
    match c {
        '"' => to.write_all(b"\\\""),
        '\\' => to.write_all(b"\\\\"),
        '\n' => to.write_all(b"\\n"),
        '\t' => to.write_all(b"\\t"),
        '\r' => to.write_all(b"\\r"),
        '\u{8}' => to.write_all(b"\\b"),
        '\u{c}' => to.write_all(b"\\f"),
        '\0'..='\u{1f}' => write!(to, "\\u{:04x}", u32::from(c)),
        other => write!(to, "{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn text_of(whole: &str) -> (String, TextSize) {
        let mut text = Vec::new();
        let size = write_text(&Json::parse(whole.to_owned()).unwrap(), &mut text).unwrap();
        (String::from_utf8(text).unwrap(), size)
    }

    #[test]
    fn structures_are_written_as_serde_would() {
        for value in [
            json!({"a": [1, 2.5, {"b": "é\n\"\\\u{1}\u{7f}/"}], "c": {}, "d": [], "e": null, "f": [true, "x,y:{}"]}),
            json!([]),
            json!("text"),
            json!([[[]], [{}], ""]),
        ] {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            for whole in [value.to_string(), pretty.clone()] {
                let (text, size) = text_of(&whole);
                assert_eq!(text, pretty);
                assert_eq!(
                    size,
                    TextSize { lines: pretty.lines().count() as u64, bytes: pretty.len() as u64 }
                );
            }
        }
        let (text, _) = text_of(r#"["\u00e9\ud83d\ude00\/\u0041\u0001\u000a"]"#);
        assert_eq!(text, "[\n  \"é😀/A\\u0001\\n\"\n]");
    }

    #[test]
    fn a_structure_around_one_text_is_written_as_that_text() {
        let content = "one\n\"two\"\r\n".repeat(50);
        let whole = json!({"path": "f", "content": content, "line_count": 100});
        let (text, size) = text_of(&json!({"structuredContent": whole}).to_string());
        assert_eq!((text.as_str(), size.lines), (content.as_str(), 100));
        let rows = json!({"rows": vec![1; 1_000], "note": "short"});
        assert!(text_of(&json!({"structuredContent": rows}).to_string()).0.starts_with("{\n"));
    }

    #[test]
    fn a_text_that_the_structure_does_not_repeat_comes_first() {
        let mut whole = json!({"content": [{"type": "text", "text": "log\nend"}, {"type": "image", "data": "x"}],
            "structuredContent": {"code": 0}});
        assert_eq!(text_of(&whole.to_string()).0, "{\n  \"code\": 0\n}");
        whole["_meta"] = json!({OWN_TEXT_META_KEY: true});
        let (text, size) = text_of(&whole.to_string());
        assert_eq!(text, "log\nend\n{\"type\":\"image\",\"data\":\"x\"}\n{\n  \"code\": 0\n}");
        assert_eq!(size.lines, 6);
    }

    #[test]
    fn texts_are_joined_and_other_blocks_stay() {
        let whole =
            json!({"content": [{"type": "text", "text": "a\n\"b\""}, {"type": "image", "data": "x"}]});
        let (text, size) = text_of(&whole.to_string());
        assert_eq!(text, "a\n\"b\"\n{\"type\":\"image\",\"data\":\"x\"}");
        assert_eq!(size.lines, 3);
        assert_eq!(text_of(r#"{"content":[]}"#), (String::new(), TextSize::default()));
    }

    #[test]
    fn deep_structures_do_not_grow_without_bound() {
        let deep = format!("{}{}{}", "[".repeat(60), vec!["1"; 200_000].join(","), "]".repeat(60));
        let (text, _) = text_of(&deep);
        assert!(text.len() <= deep.len() * 4 + (1 << 20), "{}", text.len());
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            serde_json::from_str::<Value>(&deep).unwrap()
        );
    }
}
