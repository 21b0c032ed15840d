//! Results as compact plain text for language models.
//!
//! Text of several lines stays raw. It follows a line with its key: `key (3 lines):`, or `key:` for the last
//! member, whose text extends to the end. What says nothing is omitted: nulls, empty values, flags that are
//! usually false, and SHA-256 digests. Of what comes from elsewhere, such as the body of a response, nothing is omitted.

mod exact_numbers;
mod model_text;
mod one_line;
mod table;

pub use model_text::ModelText;

use exact_numbers::quote_inexact_numbers;
use octo_model::Json;
use one_line::one_line;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fmt::Display;
use table::Table;

/// Larger results stay JSON.
const MAX_JSON_BYTES: usize = 4 << 20;
/// Deeper values are written as JSON.
const MAX_DEPTH: usize = 64;
/// Maximum length of a list or object on one line.
const MAX_LINE_BYTES: usize = 120;
/// Bytes that the text of a small result may have beyond its JSON.
const SLACK_BYTES: usize = 64;
/// Tools accept a digest shortened to this many digits.
const SHORT_DIGEST_DIGITS: usize = 16;
/// Flags that say nothing when they are false.
const QUIET_FLAGS: &[&str] = &[
    "truncated",
    "cut",
    "ignored",
    "binary",
    "dry_run",
    "deprecated",
    "draft",
    "gone",
    "timed_out",
    "current",
    "remote",
    "diff_too_long",
];

/// Members of a result whose content comes from elsewhere, where a null, a false or a digest may be what was asked for.
const VERBATIM_KEYS: &[&str] =
    &["body", "content", "json", "output", "outputs", "result", "stderr", "stdout", "text", "value"];

/// Returns the result as plain text. `None` if it is too large, has no content, or is shorter as JSON.
pub fn plain_text(result: &Json) -> Option<String> {
    if result.bytes().len() > MAX_JSON_BYTES {
        return None;
    }
    let value: Value = serde_json::from_str(&quote_inexact_numbers(result.as_str())).ok()?;
    let text = render(&value, Omission::EmptyAndDigests).or_else(|| render(&value, Omission::Empty))?;
    let size = result.bytes().len();
    (text.len() <= size + size / 20 + SLACK_BYTES).then_some(text)
}

/// Rows of a database below the names of their columns: a line each, or a line for each cell if some have
/// several lines. Numbers stay as they are.
pub fn table(columns: &[String], rows: &RawValue) -> Option<String> {
    if rows.get().len() > MAX_JSON_BYTES {
        return None;
    }
    let rows: Vec<Vec<&RawValue>> = serde_json::from_str(rows.get()).ok()?;
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| cell_text(cell)).collect()).collect();
    let columns: Vec<String> = columns.iter().map(|column| shown_key(column)).collect();
    let mut renderer = TextRenderer::new(Omission::Empty);
    match Table::of_rows(&columns, &rows) {
        Some(table) => {
            renderer.write_line(0, &table.header());
            table.rows().for_each(|row| renderer.write_line(0, &row));
        }
        None => {
            for (number, row) in rows.iter().enumerate() {
                renderer.write_line(0, &format!("row {}:", number + 1));
                columns.iter().zip(row).for_each(|(column, cell)| renderer.write_cell(column, cell));
            }
        }
    }
    renderer.trim_line_end();
    Some(renderer.text)
}

fn cell_text(cell: &RawValue) -> String {
    match cell.get() {
        "null" => "NULL".to_owned(),
        "\"\"" => "\"\"".to_owned(),
        text if text.starts_with('"') => serde_json::from_str(text).unwrap_or_else(|_| text.to_owned()),
        other => other.to_owned(),
    }
}

fn render(value: &Value, omission: Omission) -> Option<String> {
    let mut renderer = TextRenderer::new(omission);
    match value {
        Value::Object(members) => renderer.write_result(members),
        Value::Array(items) => {
            renderer.write_items(None, items, 0);
            renderer.trim_line_end();
        }
        Value::String(text) => renderer.text.push_str(text),
        Value::Null => {}
        scalar => renderer.text.push_str(&scalar.to_string()),
    }
    let text = renderer.text;
    (!text.trim().is_empty()).then_some(text)
}

/// What is left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Omission {
    Nothing,
    /// Values that say nothing.
    Empty,
    EmptyAndDigests,
}

impl Omission {
    fn drops_digests(self) -> bool {
        self == Self::EmptyAndDigests
    }
}

/// Writes a value line by line.
struct TextRenderer {
    text: String,
    /// List items whose first line is not written yet.
    bullets: usize,
    omission: Omission,
}

impl TextRenderer {
    fn new(omission: Omission) -> Self {
        Self { text: String::new(), bullets: 0, omission }
    }

    /// The longest text goes last, so that nothing can be mistaken for a part of it.
    fn write_result(&mut self, members: &Map<String, Value>) {
        let texts = members.iter().filter_map(|(key, value)| Some((key, multi_line_text(value)?)));
        let last = texts.max_by_key(|(_, text)| text.len());
        for (key, value) in members {
            if last.is_some_and(|(last, _)| last == key) {
                continue;
            }
            let omission = self.omission;
            if VERBATIM_KEYS.contains(&key.as_str()) && !is_empty(value) {
                self.omission = Omission::Nothing;
            }
            self.write_member(key, value, 0);
            self.omission = omission;
        }
        match last {
            Some((key, text)) => {
                self.write_line(0, &format!("{}:", shown_key(key)));
                self.text.push_str(text);
            }
            None => self.trim_line_end(),
        }
    }

    fn write_member(&mut self, key: &str, value: &Value, depth: usize) {
        let (key, value) = self.dotted(key, value);
        let is_hidden = depth > 0 && self.omission.drops_digests() && value.as_str().is_some_and(is_digest);
        if is_hidden || !self.says_something(&key, value) {
            return;
        }
        match value {
            Value::String(text) if text.contains('\n') => self.write_text(Some(&key), text, depth),
            Value::String(text) if is_digest(text) && self.omission.drops_digests() => {
                let short = text.get(..SHORT_DIGEST_DIGITS).unwrap_or_default();
                self.write_line(depth, &format!("{key}: {short}"));
            }
            value if is_empty(value) => self.write_line(depth, &format!("{key}: {}", list_item_text(value))),
            Value::Array(items) if depth < MAX_DEPTH => self.write_items(Some(&key), items, depth),
            Value::Object(members) if depth < MAX_DEPTH => self.write_object(&key, members, depth),
            scalar => self.write_line(depth, &format!("{key}: {}", scalar_text(scalar))),
        }
    }

    /// The path and the value of the only member of an object, or the only object of a list, at any depth.
    fn dotted<'a>(&self, key: &str, mut value: &'a Value) -> (String, &'a Value) {
        let mut path = shown_key(key);
        loop {
            match value {
                Value::Object(members) => {
                    let mut rest = members.iter().filter(|(key, value)| self.says_something(key, value));
                    let (Some((key, only)), None) = (rest.next(), rest.next()) else { return (path, value) };
                    path.push('.');
                    path.push_str(&shown_key(key));
                    value = only;
                }
                Value::Array(items) => {
                    let [only @ Value::Object(_)] = items.as_slice() else { return (path, value) };
                    path.push_str("[0]");
                    value = only;
                }
                _ => return (path, value),
            }
        }
    }

    fn write_object(&mut self, key: &str, members: &Map<String, Value>, depth: usize) {
        if let Some(line) = self.object_line(members) {
            return self.write_line(depth, &format!("{key}: {line}"));
        }
        self.write_block(depth, &format!("{key}:"), |renderer| {
            for (key, value) in members {
                renderer.write_member(key, value, depth + 1);
            }
        });
    }

    /// A small object of single words on one line.
    fn object_line(&self, members: &Map<String, Value>) -> Option<String> {
        let mut line = String::new();
        for (key, value) in members {
            if !self.says_something(key, value) {
                continue;
            }
            if value.is_array() || value.is_object() || line.len() > MAX_LINE_BYTES {
                return None;
            }
            let word = scalar_text(value);
            if word.len() > MAX_LINE_BYTES || is_digest(&word) || !is_word(key) || !is_word(&word) {
                return None;
            }
            if !line.is_empty() {
                line.push_str(", ");
            }
            line.push_str(key);
            line.push(' ');
            line.push_str(&word);
        }
        (!line.is_empty() && line.len() <= MAX_LINE_BYTES).then_some(line)
    }

    /// A list below its key: on one line, as a table, or item by item.
    fn write_items(&mut self, key: Option<&str>, items: &[Value], depth: usize) {
        if let Some(line) = self.list_line(items) {
            let line = key.map_or(line.clone(), |key| format!("{key}: {line}"));
            return self.write_line(depth, &line);
        }
        let inner = depth + usize::from(key.is_some());
        if let Some(table) = Table::of_objects(items, self.omission) {
            let header =
                format!("{}({}):", key.map_or(String::new(), |key| format!("{key} ")), table.header());
            self.write_line(depth, &header);
            return table.rows().for_each(|row| self.write_line(inner.max(1), &row));
        }
        let header = key.map_or(String::new(), |key| format!("{key}:"));
        self.write_block(depth, &header, |renderer| {
            if let Some(table) = Table::of_lists(items, renderer.omission) {
                return table.rows().for_each(|row| renderer.write_line(inner, &row));
            }
            let has_bullets = !items.iter().all(is_line);
            for item in items {
                renderer.write_item(item, inner, has_bullets);
            }
        });
    }

    fn write_item(&mut self, item: &Value, depth: usize, has_bullet: bool) {
        if self.omission.drops_digests() && item.as_str().is_some_and(is_digest) {
            return;
        }
        if !has_bullet {
            return self.write_line(depth, &list_item_text(item));
        }
        self.bullets += 1;
        let before = self.text.len();
        let line = item.as_object().and_then(|members| self.object_line(members));
        if let Some(line) = line.filter(|line| line.contains(", ")) {
            return self.write_line(depth + 1, &line);
        }
        match item {
            Value::Object(members) if depth < MAX_DEPTH => {
                for (key, value) in members {
                    self.write_member(key, value, depth + 1);
                }
            }
            Value::Array(items) if depth < MAX_DEPTH && !items.is_empty() => {
                self.write_items(None, items, depth + 1);
            }
            Value::String(text) if text.contains('\n') => self.write_text(None, text, depth + 1),
            scalar => self.write_line(depth + 1, &list_item_text(scalar)),
        }
        if self.text.len() == before {
            self.write_line(depth + 1, "{}");
        }
    }

    /// Scalars without commas on one line, if it is short.
    fn list_line(&self, items: &[Value]) -> Option<String> {
        let mut line = String::new();
        for item in items {
            if !is_line(item) || line.len() > MAX_LINE_BYTES {
                return None;
            }
            let word = list_item_text(item);
            if word.len() > MAX_LINE_BYTES || word.contains(", ") {
                return None;
            }
            if self.omission.drops_digests() && is_digest(&word) {
                continue;
            }
            if !line.is_empty() {
                line.push_str(", ");
            }
            line.push_str(&word);
        }
        (!line.is_empty() && line.len() <= MAX_LINE_BYTES).then_some(line)
    }

    /// Text as it is. The number of its lines says where it ends.
    fn write_text(&mut self, key: Option<&str>, text: &str, depth: usize) {
        let key = key.map_or(String::new(), |key| format!("{key} "));
        let lines = counted(text.lines().count(), "line", "lines");
        self.write_line(depth, &format!("{key}({lines}):"));
        self.text.push_str(text);
        if !text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// A line and what belongs to it; neither if that is nothing.
    fn write_block(&mut self, depth: usize, header: &str, write: impl FnOnce(&mut Self)) {
        let (start, bullets) = (self.text.len(), self.bullets);
        if !header.is_empty() {
            self.write_line(depth, header);
        }
        let before = self.text.len();
        write(self);
        if self.text.len() == before {
            self.text.truncate(start);
            self.bullets = bullets;
        }
    }

    fn write_cell(&mut self, column: &str, cell: &str) {
        match cell.contains('\n') {
            true => self.write_text(Some(column), cell, 1),
            false => self.write_line(1, &format!("{column}: {cell}")),
        }
    }

    fn write_line(&mut self, depth: usize, line: &str) {
        let bullets = std::mem::take(&mut self.bullets);
        (bullets..depth).for_each(|_| self.text.push_str("  "));
        (0..bullets).for_each(|_| self.text.push_str("- "));
        self.text.push_str(&one_line(line));
        self.text.push('\n');
    }

    fn trim_line_end(&mut self) {
        if self.text.ends_with('\n') {
            self.text.pop();
        }
    }

    /// A digest with the key `hash` is what a later change of the same thing is checked against.
    fn says_something(&self, key: &str, value: &Value) -> bool {
        match value {
            Value::String(text) if is_digest(text) => !self.omission.drops_digests() || key == "hash",
            _ => says_something(key, value, self.omission),
        }
    }
}

fn says_something(key: &str, value: &Value, omission: Omission) -> bool {
    let is_quiet = || is_empty(value) || (value == &Value::Bool(false) && QUIET_FLAGS.contains(&key));
    omission == Omission::Nothing || !is_quiet()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

fn multi_line_text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| text.contains('\n'))
}

/// Whether a value is a scalar on one line.
fn is_line(value: &Value) -> bool {
    !value.is_array() && !value.is_object() && multi_line_text(value).is_none()
}

/// Whether a text needs no separator but a space and a comma.
fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || matches!(c, ',' | ':'))
}

/// `1 line`, `2 lines`.
pub fn counted(count: impl Display + PartialEq + From<u8>, one: &str, many: &str) -> String {
    let noun = if count == 1.into() { one } else { many };
    format!("{count} {noun}")
}

/// A full SHA-256.
fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn shown_key(key: &str) -> String {
    one_line(key).into_owned()
}

fn scalar_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn list_item_text(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        value => scalar_text(value),
    }
}

#[cfg(test)]
mod tests;
