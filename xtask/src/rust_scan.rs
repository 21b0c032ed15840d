//! Minimal Rust lexer for finding code outside of comments and literals.

/// Returns text of the same length in which comments and the contents of literals are spaces. Line breaks are kept.
pub fn blank_non_code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let skipped =
            skipped_len(bytes.get(at..).unwrap_or_default(), at == 0 || !is_word_byte(bytes.get(at - 1)));
        let kept = skipped.max(1);
        for byte in bytes.iter().skip(at).take(kept) {
            let keep = *byte == b'\n' || (skipped == 0 && byte.is_ascii());
            code.push(if keep { char::from(*byte) } else { ' ' });
        }
        at += kept;
    }
    code
}

/// Returns the string literals, with their quotes and positions.
pub fn string_literals(text: &str) -> Vec<(usize, &str)> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let len = skipped_len(rest, at == 0 || !is_word_byte(bytes.get(at - 1)));
        if len > 0 && !matches!(rest, [b'/' | b'\'', ..]) {
            found.extend(text.get(at..at + len).map(|literal| (at, literal)));
        }
        at += len.max(1);
    }
    found
}

/// Length of the comment or literal that starts here, or 0. `fresh`: no identifier ends here.
fn skipped_len(rest: &[u8], fresh: bool) -> usize {
    match rest {
        [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => quoted(rest, b'"'),
        [b'r', b'"' | b'#', ..] if fresh => raw_string(rest, 1),
        [b'b' | b'c', b'r', b'"' | b'#', ..] if fresh => raw_string(rest, 2),
        [b'\'', ..] => character(rest),
        _ => 0,
    }
}

fn is_word_byte(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match rest.get(at..).unwrap_or_default() {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Up to and including the closing quote; skips escaped quotes.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\\' => at += 2,
            byte if *byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#` and so on; 0 for a raw identifier such as `r#type`.
fn raw_string(rest: &[u8], prefix: usize) -> usize {
    let hashes = rest.iter().skip(prefix).take_while(|byte| **byte == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return 0;
    }
    let mut close = vec![b'#'; hashes + 1];
    if let Some(first) = close.first_mut() {
        *first = b'"';
    }
    let body = rest.get(open + 1..).unwrap_or_default();
    let end = body.windows(close.len()).position(|window| window == close);
    end.map_or(rest.len(), |end| open + 1 + end + close.len())
}

/// `'a'`, `'\n'`; 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    match rest {
        [_, b'\\', ..] => quoted(rest, b'\''),
        [_, first, ..] => {
            let close = 1 + utf8_len(*first);
            if rest.get(close) == Some(&b'\'') { close + 1 } else { 0 }
        }
        _ => 0,
    }
}

fn utf8_len(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

/// Position after the bracket that closes the one at `open`.
pub fn closing_bracket(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// All positions where `needle` is a whole word.
pub fn find_words(code: &str, needle: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    let apart = |at: &usize| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        !is_word_byte(before) && !is_word_byte(bytes.get(at + needle.len()))
    };
    code.match_indices(needle).map(|(at, _)| at).filter(apart).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks() {
        for (text, code) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("fn {")"#, "f(      )"),
            (r#"f("\"{", 1)"#, "f(     , 1)"),
            ("r#\"a\"b\"# c", "         c"),
            ("r#type x", "r#type x"),
            ("for\"x\"", "for   "),
            ("'{' 'a '\\'' x", "    'a      x"),
            ("br\"{\" 'é'", "          "),
            ("&'static str", "&'static str"),
        ] {
            assert_eq!(blank_non_code(text), code, "{text}");
            assert_eq!(blank_non_code(text).len(), text.len(), "{text}");
        }
    }

    #[test]
    fn strings() {
        let text = "f(\"a\", 'b', r#\"c\"#) // \"d\"\n/* \"e\" */ b\"f\" \"\u{e9}\"";
        let found: Vec<&str> = string_literals(text).into_iter().map(|(_, literal)| literal).collect();
        assert_eq!(found, ["\"a\"", "r#\"c\"#", "\"f\"", "\"\u{e9}\""]);
    }

    #[test]
    fn never_finished() {
        for text in ["\"abc", "/* abc", "r#\"abc", "'", "'\\", "r", "b"] {
            assert_eq!(blank_non_code(text).len(), text.len(), "{text}");
        }
    }

    #[test]
    fn brackets() {
        assert_eq!(closing_bracket("f(a[b]{c})d", 1), Some(10));
        assert_eq!(closing_bracket("f(a", 1), None);
        assert_eq!(find_words("fn fnx xfn fn", "fn"), [0, 11]);
    }
}
