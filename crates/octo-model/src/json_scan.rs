//! A strict pass over JSON text, and fast splitting of text that has passed it.
//!
//! The policy must read the same as an upstream, so everything that parsers disagree about is refused:
//! duplicate keys, lone surrogates, control characters, nesting beyond a limit.

use std::borrow::Cow;
use std::collections::HashSet;

/// Maximum nesting depth.
const MAX_DEPTH: usize = 64;
/// Up to this number the keys of an object are compared one by one, beyond it in a set.
const MAX_LINEAR_KEYS: usize = 16;
/// Bytes of a string that are checked at once.
const BLOCK_LEN: usize = 32;

type Scan<T> = Result<T, &'static str>;

/// Accepts exactly one JSON value with optional surrounding whitespace.
pub fn check(text: &[u8]) -> Scan<()> {
    if std::str::from_utf8(text).is_err() {
        return Err("the text is not UTF-8");
    }
    let mut cursor = Cursor { text, at: 0 };
    cursor.skip_whitespace();
    cursor.value(0)?;
    cursor.skip_whitespace();
    if cursor.at == text.len() { Ok(()) } else { Err("trailing characters after the JSON value") }
}

/// Passes the key and value slices of an object that has passed [`check`] to `take` until it stops.
pub fn members<'a>(text: &'a [u8], mut take: impl FnMut(Cow<'a, str>, &'a [u8]) -> ScanControl) -> Scan<()> {
    let mut cursor = Cursor { text, at: 0 };
    cursor.skip_whitespace();
    cursor.expect(b'{', "expected an object")?;
    cursor.skip_whitespace();
    if cursor.peek() == Some(b'}') {
        return Ok(());
    }
    loop {
        cursor.skip_whitespace();
        let key = cursor.string()?;
        cursor.skip_whitespace();
        cursor.expect(b':', "expected a colon")?;
        cursor.skip_whitespace();
        let from = cursor.at;
        cursor.skip_value();
        if take(key, text.get(from..cursor.at).unwrap_or_default()) == ScanControl::Stop {
            return Ok(());
        }
        cursor.skip_whitespace();
        match cursor.next() {
            Some(b',') => {}
            Some(b'}') => return Ok(()),
            _ => return Err("expected a comma or a closing brace"),
        }
    }
}

/// Whether to continue with the next member.
#[derive(PartialEq, Eq)]
pub enum ScanControl {
    Stop,
    Continue,
}

/// Returns whether a string needs no escapes in JSON.
pub fn needs_no_escape(text: &[u8]) -> bool {
    let mut cursor = Cursor { text, at: 0 };
    cursor.skip_plain();
    cursor.at == text.len()
}

/// The first element slices of an array that has passed [`check`].
pub fn elements(text: &[u8], most: usize) -> Scan<Vec<&[u8]>> {
    let mut cursor = Cursor { text, at: 0 };
    let mut found = Vec::new();
    cursor.skip_whitespace();
    cursor.expect(b'[', "expected an array")?;
    cursor.skip_whitespace();
    if cursor.peek() == Some(b']') {
        return Ok(found);
    }
    loop {
        cursor.skip_whitespace();
        let from = cursor.at;
        cursor.skip_value();
        found.push(text.get(from..cursor.at).unwrap_or_default());
        if found.len() >= most {
            return Ok(found);
        }
        cursor.skip_whitespace();
        match cursor.next() {
            Some(b',') => {}
            Some(b']') => return Ok(found),
            _ => return Err("expected a comma or a closing bracket"),
        }
    }
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8, otherwise: &'static str) -> Scan<()> {
        if self.next() == Some(byte) { Ok(()) } else { Err(otherwise) }
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Scan<()> {
        if depth >= MAX_DEPTH {
            return Err("the JSON is nested too deeply");
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.check_string(),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err("expected a JSON value"),
            None => Err("unexpected end of the JSON text"),
        }
    }

    fn object(&mut self, depth: usize) -> Scan<()> {
        self.at += 1;
        self.skip_whitespace();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        let mut keys = Keys::default();
        loop {
            self.skip_whitespace();
            if self.peek() != Some(b'"') {
                return Err("expected a key in quotes");
            }
            keys.add(self)?;
            self.skip_whitespace();
            self.expect(b':', "expected a colon")?;
            self.skip_whitespace();
            self.value(depth + 1)?;
            self.skip_whitespace();
            match self.next() {
                Some(b',') => {}
                Some(b'}') => return Ok(()),
                _ => return Err("expected a comma or a closing brace"),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Scan<()> {
        self.at += 1;
        self.skip_whitespace();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_whitespace();
            self.value(depth + 1)?;
            self.skip_whitespace();
            match self.next() {
                Some(b',') => {}
                Some(b']') => return Ok(()),
                _ => return Err("expected a comma or a closing bracket"),
            }
        }
    }

    fn literal(&mut self, word: &'static [u8]) -> Scan<()> {
        let end = self.at + word.len();
        if self.text.get(self.at..end) != Some(word) {
            return Err("expected a JSON value");
        }
        self.at = end;
        Ok(())
    }

    fn digits(&mut self) -> Scan<()> {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == from { Err("expected a digit") } else { Ok(()) }
    }

    fn number(&mut self) -> Scan<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// Reads a string; copies it only if it has escapes.
    fn string(&mut self) -> Scan<Cow<'a, str>> {
        self.expect(b'"', "expected a quote")?;
        let from = self.at;
        let mut escaped: Option<String> = None;
        let mut plain = from;
        loop {
            self.skip_plain();
            match self.next() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let into = escaped.get_or_insert_with(String::new);
                    into.push_str(utf8_text(self.text.get(plain..self.at - 1)));
                    into.push(self.escape()?);
                    plain = self.at;
                }
                other => return Err(string_error(other)),
            }
        }
        let rest = utf8_text(self.text.get(plain..self.at - 1));
        Ok(match escaped {
            Some(mut whole) => {
                whole.push_str(rest);
                Cow::Owned(whole)
            }
            None => Cow::Borrowed(rest),
        })
    }

    /// Checks a string without returning it.
    fn check_string(&mut self) -> Scan<()> {
        self.expect(b'"', "expected a quote")?;
        loop {
            self.skip_plain();
            match self.next() {
                Some(b'"') => return Ok(()),
                Some(b'\\') => drop(self.escape()?),
                other => return Err(string_error(other)),
            }
        }
    }

    /// Advances to the next quote, backslash or control character: first in blocks that the compiler checks with vector
    /// instructions, then eight bytes at a time.
    fn skip_plain(&mut self) {
        let (blocks, _) = self.text.get(self.at..).unwrap_or_default().as_chunks::<BLOCK_LEN>();
        self.at += blocks.iter().take_while(|block| is_plain(block)).count() * BLOCK_LEN;
        let (words, rest) = self.text.get(self.at..).unwrap_or_default().as_chunks::<8>();
        for word in words {
            let found = special_bytes(u64::from_le_bytes(*word));
            if found != 0 {
                self.at += found.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
        }
        self.at += rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count();
    }

    fn escape(&mut self) -> Scan<char> {
        Ok(match self.next() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.code_point(),
            _ => return Err("unknown escape in a string"),
        })
    }

    fn code_point(&mut self) -> Scan<char> {
        const LONE: &str = "lone surrogate in a string";
        let first = self.hex4()?;
        let code = match first {
            0xd800..=0xdbff => {
                self.expect(b'\\', LONE)?;
                self.expect(b'u', LONE)?;
                match self.hex4()? {
                    second @ 0xdc00..=0xdfff => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    _ => return Err(LONE),
                }
            }
            other => other,
        };
        char::from_u32(code).ok_or(LONE)
    }

    fn hex4(&mut self) -> Scan<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.next().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or("expected four hexadecimal digits in an escape")?;
        }
        Ok(code)
    }

    /// Skips one value of validated text.
    fn skip_value(&mut self) {
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => self.skip_string(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth == 0 => return,
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return,
                _ => self.at += 1,
            }
            if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
                return;
            }
        }
    }

    fn skip_string(&mut self) {
        self.at += 1;
        loop {
            self.skip_plain();
            match self.next() {
                Some(b'\\') => self.at += 1,
                Some(b'"') | None => return,
                Some(_) => {}
            }
        }
    }
}

fn is_plain(block: &[u8; BLOCK_LEN]) -> bool {
    let is_special = |byte: u8| u8::from(byte == b'"') | u8::from(byte == b'\\') | u8::from(byte < 0x20);
    block.iter().fold(0, |found, byte| found | is_special(*byte)) == 0
}

/// The high bit of each byte that is a quote, a backslash or a control character. Only the lowest is exact,
/// since a match borrows from the bytes above it.
const fn special_bytes(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let quote = word ^ (EACH * b'"' as u64);
    let backslash = word ^ (EACH * b'\\' as u64);
    let control = word.wrapping_sub(EACH * 0x20) & !word;
    let either = (quote.wrapping_sub(EACH) & !quote) | (backslash.wrapping_sub(EACH) & !backslash);
    (control | either) & HIGH
}

fn string_error(byte: Option<u8>) -> &'static str {
    match byte {
        Some(_) => "control character in a string",
        None => "unterminated string",
    }
}

fn utf8_text(bytes: Option<&[u8]>) -> &str {
    bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
}

/// The keys of one object, to detect duplicates.
#[derive(Default)]
struct Keys<'a> {
    count: usize,
    /// Used while there are few keys, without escapes.
    few: [&'a [u8]; MAX_LINEAR_KEYS],
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Keys<'a> {
    /// Reads the next key.
    fn add(&mut self, cursor: &mut Cursor<'a>) -> Scan<()> {
        const TWICE: &str = "duplicate key in an object";
        let key = cursor.string()?;
        let few = self.few.get_mut(..=self.count).filter(|_| self.many.is_empty());
        if let (Cow::Borrowed(key), Some([seen @ .., free])) = (&key, few) {
            if seen.contains(&key.as_bytes()) {
                return Err(TWICE);
            }
            *free = key.as_bytes();
            self.count += 1;
            return Ok(());
        }
        let known = self.few.iter().take(self.count).map(|key| Cow::Borrowed(utf8_text(Some(key))));
        self.many.extend(known);
        self.count = 0;
        if self.many.insert(key) { Ok(()) } else { Err(TWICE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_everybody_reads_alike() {
        for text in [
            "null",
            " [1, -0.5e+3, true] ",
            "{}",
            r#"{"a":{"b":[]},"c":"x\n\u00e9\ud83d\ude00"}"#,
            "0",
            r#""""#,
        ] {
            assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
        }
    }

    #[test]
    fn refuses_what_parsers_disagree_about() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "+1",
            "NaN",
            "1 2",
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"\u0061":1,"a":2}"#,
            r#"{"b":0,"\u0061":1,"c":3,"b":2}"#,
            r#""\ud800""#,
            r#""\udc00""#,
            "\"\u{1}\"",
            "'a'",
            r#"{a:1}"#,
            r#"{"a" 1}"#,
            "tru",
            "1.",
            "1e",
            r#""\x""#,
        ] {
            assert!(check(text.as_bytes()).is_err(), "{text}");
        }
        assert!(check(b"\"\xff\"").is_err());
        assert!(check("[".repeat(65).as_bytes()).is_err());
        let many: Vec<String> = (0..40).map(|n| format!("\"k{n}\":1")).collect();
        assert!(check(format!("{{{}}}", many.join(",")).as_bytes()).is_ok());
        assert!(check(format!("{{{},\"k3\":2}}", many.join(",")).as_bytes()).is_err());
    }

    #[test]
    fn splits_objects_and_arrays() {
        let object = br#" { "a" : [1,{"b":"]}"}] , "c\n":"x\"y", "d":1.5e3 ,"e":null} "#;
        assert_eq!(
            split(object).unwrap(),
            r#"a=[1,{"b":"]}"}] c
="x\"y" d=1.5e3 e=null "#
        );
        let parts = elements(b"[1, \"a,b\" ,{\"x\":[2]}, []]", usize::MAX).unwrap();
        assert_eq!(parts, [&b"1"[..], b"\"a,b\"", b"{\"x\":[2]}", b"[]"]);
        assert!(split(b"{}").unwrap().is_empty() && elements(b"[ ]", 9).unwrap().is_empty());
        assert!(split(b"[]").is_err() && elements(b"{}", 9).is_err());
    }

    fn split(object: &[u8]) -> Scan<String> {
        let mut said = String::new();
        members(object, |key, value| {
            said.push_str(&format!("{key}={} ", std::str::from_utf8(value).unwrap()));
            ScanControl::Continue
        })?;
        Ok(said)
    }

    #[test]
    fn finds_what_is_special_at_every_place() {
        for length in 0..80 {
            for at in 0..length {
                for byte in 0..=255u8 {
                    let mut text = vec![b'x'; length];
                    text[at] = byte;
                    assert_eq!(
                        needs_no_escape(&text),
                        !matches!(byte, b'"' | b'\\' | 0..=0x1f),
                        "{byte} at {at}"
                    );
                }
            }
        }
    }
}
