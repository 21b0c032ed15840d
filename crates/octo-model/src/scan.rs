//! One strict pass over JSON text, and quick splitting of text that has passed it.
//!
//! What policy reads must be what an upstream reads, so everything that parsers disagree about is
//! refused here: duplicate keys, lone surrogates, control characters, nesting past a limit.

use std::borrow::Cow;
use std::collections::HashSet;

/// Nesting past this is refused.
const MAX_DEPTH: usize = 64;
/// Up to here keys of one object are compared one by one, past it in a set.
const FEW_KEYS: usize = 16;

type Scan<T> = Result<T, &'static str>;

/// Accepts exactly one JSON value with optional white space around it.
pub fn check(text: &[u8]) -> Scan<()> {
    if std::str::from_utf8(text).is_err() {
        return Err("the text is not UTF-8");
    }
    let mut cursor = Cursor { text, at: 0 };
    cursor.blank();
    cursor.value(0)?;
    cursor.blank();
    if cursor.at == text.len() { Ok(()) } else { Err("something follows the JSON value") }
}

/// The key and value slices of an object that has passed [`check`].
pub fn members(text: &[u8]) -> Scan<Vec<(Cow<'_, str>, &[u8])>> {
    let mut cursor = Cursor { text, at: 0 };
    let mut found = Vec::new();
    cursor.blank();
    cursor.expect(b'{', "an object was expected")?;
    cursor.blank();
    if cursor.peek() == Some(b'}') {
        return Ok(found);
    }
    loop {
        cursor.blank();
        let key = cursor.string()?;
        cursor.blank();
        cursor.expect(b':', "a colon was expected")?;
        cursor.blank();
        let from = cursor.at;
        cursor.skip();
        found.push((key, text.get(from..cursor.at).unwrap_or_default()));
        cursor.blank();
        match cursor.next() {
            Some(b',') => {}
            Some(b'}') => return Ok(found),
            _ => return Err("a comma or a closing brace was expected"),
        }
    }
}

/// The element slices of an array that has passed [`check`].
pub fn elements(text: &[u8]) -> Scan<Vec<&[u8]>> {
    let mut cursor = Cursor { text, at: 0 };
    let mut found = Vec::new();
    cursor.blank();
    cursor.expect(b'[', "an array was expected")?;
    cursor.blank();
    if cursor.peek() == Some(b']') {
        return Ok(found);
    }
    loop {
        cursor.blank();
        let from = cursor.at;
        cursor.skip();
        found.push(text.get(from..cursor.at).unwrap_or_default());
        cursor.blank();
        match cursor.next() {
            Some(b',') => {}
            Some(b']') => return Ok(found),
            _ => return Err("a comma or a closing bracket was expected"),
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

    fn blank(&mut self) {
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
            Some(b'"') => self.string().map(drop),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err("a JSON value was expected"),
            None => Err("the JSON text ends too early"),
        }
    }

    fn object(&mut self, depth: usize) -> Scan<()> {
        self.at += 1;
        self.blank();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        let mut keys = Keys::default();
        loop {
            self.blank();
            if self.peek() != Some(b'"') {
                return Err("a key in quotes was expected");
            }
            keys.add(self.string()?)?;
            self.blank();
            self.expect(b':', "a colon was expected")?;
            self.blank();
            self.value(depth + 1)?;
            self.blank();
            match self.next() {
                Some(b',') => {}
                Some(b'}') => return Ok(()),
                _ => return Err("a comma or a closing brace was expected"),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Scan<()> {
        self.at += 1;
        self.blank();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.blank();
            self.value(depth + 1)?;
            self.blank();
            match self.next() {
                Some(b',') => {}
                Some(b']') => return Ok(()),
                _ => return Err("a comma or a closing bracket was expected"),
            }
        }
    }

    fn word(&mut self, word: &'static [u8]) -> Scan<()> {
        let end = self.at + word.len();
        if self.text.get(self.at..end) != Some(word) {
            return Err("a JSON value was expected");
        }
        self.at = end;
        Ok(())
    }

    fn digits(&mut self) -> Scan<()> {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == from { Err("a digit was expected") } else { Ok(()) }
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

    /// Reads a string; only one with escapes is copied.
    fn string(&mut self) -> Scan<Cow<'a, str>> {
        self.expect(b'"', "a quote was expected")?;
        let from = self.at;
        let mut escaped: Option<String> = None;
        let mut plain = from;
        loop {
            match self.next() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let into = escaped.get_or_insert_with(String::new);
                    into.push_str(text_of(self.text.get(plain..self.at - 1)));
                    into.push(self.escape()?);
                    plain = self.at;
                }
                Some(0..=0x1f) => return Err("a control character stands in a string"),
                Some(_) => {}
                None => return Err("a string is not closed"),
            }
        }
        let rest = text_of(self.text.get(plain..self.at - 1));
        Ok(match escaped {
            Some(mut whole) => {
                whole.push_str(rest);
                Cow::Owned(whole)
            }
            None => Cow::Borrowed(rest),
        })
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
            _ => return Err("an unknown escape stands in a string"),
        })
    }

    fn code_point(&mut self) -> Scan<char> {
        const LONE: &str = "a lone surrogate stands in a string";
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
            code = code * 16 + digit.ok_or("an escape needs four hexadecimal digits")?;
        }
        Ok(code)
    }

    /// Passes over one value of checked text.
    fn skip(&mut self) {
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
        while let Some(byte) = self.next() {
            match byte {
                b'\\' => self.at += 1,
                b'"' => return,
                _ => {}
            }
        }
    }
}

fn text_of(bytes: Option<&[u8]>) -> &str {
    bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
}

/// The keys of one object, to find a second one of the same name.
#[derive(Default)]
struct Keys<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Keys<'a> {
    fn add(&mut self, key: Cow<'a, str>) -> Scan<()> {
        const TWICE: &str = "an object has the same key twice";
        if !self.many.is_empty() {
            return if self.many.insert(key) { Ok(()) } else { Err(TWICE) };
        }
        if self.few.contains(&key) {
            return Err(TWICE);
        }
        self.few.push(key);
        if self.few.len() > FEW_KEYS {
            self.many.extend(self.few.drain(..));
        }
        Ok(())
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
        let found = members(object).unwrap();
        let plain: Vec<(&str, &str)> =
            found.iter().map(|(key, value)| (key.as_ref(), std::str::from_utf8(value).unwrap())).collect();
        assert_eq!(plain, [("a", r#"[1,{"b":"]}"}]"#), ("c\n", r#""x\"y""#), ("d", "1.5e3"), ("e", "null")]);
        let parts = elements(b"[1, \"a,b\" ,{\"x\":[2]}, []]").unwrap();
        assert_eq!(parts, [&b"1"[..], b"\"a,b\"", b"{\"x\":[2]}", b"[]"]);
        assert!(members(b"{}").unwrap().is_empty() && elements(b"[ ]").unwrap().is_empty());
        assert!(members(b"[]").is_err() && elements(b"{}").is_err());
    }
}
