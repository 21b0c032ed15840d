//! Values as JSON. Numbers are JSON numbers if all readers parse them exactly, otherwise strings.

use super::literal::{self, ArrayNode, Range};
use super::sql_types::{SqlType, TypeKind};
use fallible_iterator::FallibleIterator;
use octo_toolkit::ToolError;
use postgres_protocol::message::backend::DataRowBody;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// Digits that a double represents exactly.
const MAX_EXACT_DIGITS: usize = 15;
/// Integers that a double represents exactly.
const MAX_SAFE_INTEGER: u64 = 1 << 53;
/// A json value nested deeper is returned as text, because readers have limits.
const MAX_JSON_DEPTH: usize = 64;

/// Writes as many of the first rows as fit into `room` bytes as an array of arrays, and returns their number. The first
/// row is always included.
pub fn write_rows(
    rows: &[DataRowBody],
    types: &[Arc<SqlType>],
    room: usize,
) -> Result<(Box<RawValue>, usize), ToolError> {
    let bytes: usize = rows.iter().map(|row| row.buffer().len() + 2).sum();
    let mut out = Vec::with_capacity((bytes + bytes / 2).min(room) + 16);
    out.push(b'[');
    let mut count = 0;
    for row in rows {
        let whole = out.len();
        if count > 0 {
            out.push(b',');
        }
        put_row(&mut out, row, types)?;
        if count > 0 && out.len() >= room {
            out.truncate(whole);
            break;
        }
        count += 1;
    }
    out.push(b']');
    let text = String::from_utf8(out).map_err(ToolError::internal)?;
    RawValue::from_string(text).map(|rows| (rows, count)).map_err(ToolError::internal)
}

fn put_row(out: &mut Vec<u8>, row: &DataRowBody, types: &[Arc<SqlType>]) -> Result<(), ToolError> {
    out.push(b'[');
    let (mut ranges, buffer) = (row.ranges(), row.buffer());
    let mut at = 0;
    while let Some(range) = ranges.next().map_err(ToolError::internal)? {
        if at > 0 {
            out.push(b',');
        }
        match range.and_then(|range| buffer.get(range)) {
            None => out.extend_from_slice(b"null"),
            Some(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                write_value(out, types.get(at).map_or(&TypeKind::Text, |kind| &kind.kind), &text);
            }
        }
        at += 1;
    }
    out.push(b']');
    Ok(())
}

/// First field of a row as text.
pub fn first_text(row: &DataRowBody) -> String {
    let range = row.ranges().next().ok().flatten().flatten();
    let bytes = range.and_then(|range| row.buffer().get(range)).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// Writes one value. A value that does not match its type is written as text.
pub fn write_value(out: &mut Vec<u8>, kind: &TypeKind, text: &str) {
    let start = out.len();
    if try_put(out, kind, text).is_none() {
        out.truncate(start);
        string(out, text);
    }
}

fn try_put(out: &mut Vec<u8>, kind: &TypeKind, text: &str) -> Option<()> {
    match kind {
        TypeKind::Text => string(out, text),
        TypeKind::Bool => out.extend_from_slice(match text {
            "t" => b"true",
            "f" => b"false",
            _ => return None,
        }),
        TypeKind::SafeInteger => number(out, text, is_whole(text))?,
        TypeKind::BigInteger => number(out, text, is_whole(text) && fits_whole(text))?,
        TypeKind::Float => {
            number(out, text, text.bytes().next_back().is_some_and(|last| last.is_ascii_digit()))?
        }
        TypeKind::Numeric => number(out, text, is_exact(text))?,
        TypeKind::Json => json(out, text)?,
        TypeKind::Timestamp => string(out, &to_rfc3339(text)),
        TypeKind::TimeTz => string(out, &with_offset(text)),
        TypeKind::Void => out.extend_from_slice(b"null"),
        TypeKind::Array(element, delimiter) => array(out, element, *delimiter, text)?,
        TypeKind::Vector(element) => {
            list(out, text.split_whitespace(), |out, part| write_value(out, &element.kind, part))
        }
        TypeKind::Composite(fields) => composite(out, fields, text)?,
        TypeKind::Record => {
            list(out, literal::row(text)?.iter(), |out, field| {
                nullable(out, &TypeKind::Text, field.as_deref())
            });
        }
        TypeKind::Range(element) => range(out, element, &literal::range(text)?),
        TypeKind::Multirange(over) => {
            let TypeKind::Range(element) = &over.kind else { return None };
            list(out, literal::multirange(text)?.iter(), |out, one| range(out, element, one));
        }
        TypeKind::Hstore => pairs(out, literal::hstore(text)?.iter(), |out, value: &Option<String>| {
            nullable(out, &TypeKind::Text, value.as_deref());
        }),
    }
    Some(())
}

fn string(out: &mut Vec<u8>, text: &str) {
    // Writing to memory cannot fail, and all text can be encoded as JSON.
    let _ = serde_json::to_writer(out, text);
}

fn number(out: &mut Vec<u8>, text: &str, exact: bool) -> Option<()> {
    exact.then(|| out.extend_from_slice(text.as_bytes()))
}

fn nullable(out: &mut Vec<u8>, kind: &TypeKind, text: Option<&str>) {
    match text {
        Some(text) => write_value(out, kind, text),
        None => out.extend_from_slice(b"null"),
    }
}

fn list<T>(out: &mut Vec<u8>, items: impl Iterator<Item = T>, mut one: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        one(out, item);
    }
    out.push(b']');
}

fn pairs<'a, V: 'a>(
    out: &mut Vec<u8>,
    items: impl Iterator<Item = &'a (String, V)>,
    mut one: impl FnMut(&mut Vec<u8>, &'a V),
) {
    out.push(b'{');
    for (at, (key, value)) in items.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        string(out, key);
        out.push(b':');
        one(out, value);
    }
    out.push(b'}');
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn fits_whole(text: &str) -> bool {
    text.trim_start_matches('-').parse::<u64>().is_ok_and(|value| value <= MAX_SAFE_INTEGER)
}

/// Whether the decimal survives a round trip through a double.
fn is_exact(text: &str) -> bool {
    let body = text.strip_prefix('-').unwrap_or(text);
    if !body.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') || body.len() > 40 {
        return false;
    }
    let leading = body.trim_start_matches(['0', '.']);
    let digits = if body.contains('.') { leading } else { leading.trim_end_matches('0') };
    digits.bytes().filter(u8::is_ascii_digit).count() <= MAX_EXACT_DIGITS
}

/// `2026-01-31 12:00:00+00` as RFC 3339. `infinity` and BC dates are unchanged.
fn to_rfc3339(text: &str) -> Cow<'_, str> {
    match text.split_once(' ') {
        Some((date, time)) if !time.ends_with("BC") => Cow::Owned(format!("{date}T{}", with_offset(time))),
        _ => Cow::Borrowed(text),
    }
}

/// Adds minutes to an offset in hours.
fn with_offset(time: &str) -> Cow<'_, str> {
    match time.rfind(['+', '-']).and_then(|at| time.get(at..)) {
        Some(offset) if offset.len() == 3 => Cow::Owned(format!("{time}:00")),
        _ => Cow::Borrowed(time),
    }
}

fn array(out: &mut Vec<u8>, element: &SqlType, delimiter: char, text: &str) -> Option<()> {
    let (bounds, node) = literal::array(text, delimiter)?;
    let Some(bounds) = bounds else {
        tree(out, element, &node);
        return Some(());
    };
    out.extend_from_slice(b"{\"bounds\":");
    list(out, bounds.iter(), |out, (lower, upper)| {
        out.extend_from_slice(format!("[{lower},{upper}]").as_bytes())
    });
    out.extend_from_slice(b",\"values\":");
    tree(out, element, &node);
    out.push(b'}');
    Some(())
}

fn tree(out: &mut Vec<u8>, element: &SqlType, node: &ArrayNode) {
    match node {
        ArrayNode::Null => out.extend_from_slice(b"null"),
        ArrayNode::Leaf(text) => write_value(out, &element.kind, text),
        ArrayNode::Branch(nodes) => list(out, nodes.iter(), |out, node| tree(out, element, node)),
    }
}

fn composite(out: &mut Vec<u8>, fields: &[(String, Arc<SqlType>)], text: &str) -> Option<()> {
    let values = literal::row(text)?;
    if values.len() != fields.len() && !(fields.is_empty() && values == [None]) {
        return None;
    }
    let mut values = values.iter();
    pairs(out, fields.iter(), |out, kind: &Arc<SqlType>| {
        nullable(out, &kind.kind, values.next().and_then(Option::as_deref));
    });
    Some(())
}

fn range(out: &mut Vec<u8>, element: &SqlType, range: &Range) {
    match range {
        Range::Empty => out.extend_from_slice(b"{\"empty\":true}"),
        Range::Between(bounds, lower, upper) => {
            out.extend_from_slice(b"{\"lower\":");
            nullable(out, &element.kind, lower.as_deref());
            out.extend_from_slice(b",\"upper\":");
            nullable(out, &element.kind, upper.as_deref());
            out.extend_from_slice(format!(",\"bounds\":\"{bounds}\"}}").as_bytes());
        }
    }
}

/// The text itself, minified, if all readers accept it.
fn json(out: &mut Vec<u8>, text: &str) -> Option<()> {
    if serde_json::from_str::<&RawValue>(text).is_err() || depth(text) > MAX_JSON_DEPTH {
        return None;
    }
    let (mut inside, mut escaped) = (false, false);
    out.reserve(text.len());
    for byte in text.trim().bytes() {
        if inside {
            inside = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            continue;
        } else {
            inside = byte == b'"';
        }
        out.push(byte);
    }
    Some(())
}

fn depth(text: &str) -> usize {
    let (mut deepest, mut now, mut inside, mut escaped) = (0usize, 0usize, false, false);
    for byte in text.bytes() {
        if inside {
            inside = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => inside = true,
            b'{' | b'[' => {
                now += 1;
                deepest = deepest.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_value(kind: &TypeKind, text: &str) -> String {
        let mut out = Vec::new();
        write_value(&mut out, kind, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn scalars() {
        for (kind, text, json) in [
            (TypeKind::Bool, "t", "true"),
            (TypeKind::SafeInteger, "-7", "-7"),
            (TypeKind::BigInteger, "9007199254740992", "9007199254740992"),
            (TypeKind::BigInteger, "9007199254740993", "\"9007199254740993\""),
            (TypeKind::BigInteger, "-9223372036854775808", "\"-9223372036854775808\""),
            (TypeKind::Float, "1e+20", "1e+20"),
            (TypeKind::Float, "-0.5", "-0.5"),
            (TypeKind::Float, "NaN", "\"NaN\""),
            (TypeKind::Float, "-Infinity", "\"-Infinity\""),
            (TypeKind::Numeric, "0.10", "0.10"),
            (TypeKind::Numeric, "123456789012345", "123456789012345"),
            (TypeKind::Numeric, "1234567890123456", "\"1234567890123456\""),
            (TypeKind::Numeric, "0.000000000000001", "0.000000000000001"),
            (TypeKind::Numeric, "12345678.90123456", "\"12345678.90123456\""),
            (TypeKind::Numeric, "NaN", "\"NaN\""),
            (TypeKind::Numeric, "1000000000000000000", "1000000000000000000"),
            (TypeKind::Timestamp, "2026-01-31 12:00:00.5+00", "\"2026-01-31T12:00:00.5+00:00\""),
            (TypeKind::Timestamp, "2026-01-31 12:00:00-03:30", "\"2026-01-31T12:00:00-03:30\""),
            (TypeKind::Timestamp, "2026-01-31 12:00:00", "\"2026-01-31T12:00:00\""),
            (TypeKind::Timestamp, "infinity", "\"infinity\""),
            (TypeKind::Timestamp, "0044-03-15 12:00:00 BC", "\"0044-03-15 12:00:00 BC\""),
            (TypeKind::TimeTz, "12:00:00+02", "\"12:00:00+02:00\""),
            (TypeKind::Json, "{\"a\" :\n [1, \"x \\\" y\"]}", "{\"a\":[1,\"x \\\" y\"]}"),
            (TypeKind::Json, "1 2", "\"1 2\""),
            (TypeKind::Text, "a\"b\u{1}", "\"a\\\"b\\u0001\""),
            (TypeKind::Void, "", "null"),
            (TypeKind::Record, "(1,\"a b\",)", "[\"1\",\"a b\",null]"),
            (TypeKind::Hstore, "\"a\"=>\"1\", \"b\"=>NULL", "{\"a\":\"1\",\"b\":null}"),
        ] {
            assert_eq!(written_value(&kind, text), json, "{kind:?} {text}");
        }
    }

    #[test]
    fn json_that_is_too_deep_is_text() {
        let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
        assert_eq!(written_value(&TypeKind::Json, &deep), format!("\"{deep}\""));
    }
}
