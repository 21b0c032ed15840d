//! Lists of similar items as rows.

use super::{Omission, is_digest, is_empty, is_line, list_item_text, says_something, scalar_text};
use serde_json::{Map, Value};
use std::collections::HashSet;

const MAX_COLUMNS: usize = 32;
/// Maximum length of a list in a cell.
const MAX_CELL_LIST_BYTES: usize = 120;

/// Rows of cells. The separator occurs in no cell.
pub(super) struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    separator: &'static str,
}

impl Table {
    /// Two or more flat objects with mostly the same members. Columns without content are omitted.
    pub fn of_objects(items: &[Value], omission: Omission) -> Option<Self> {
        let objects: Vec<&Map<String, Value>> = items.iter().map_while(Value::as_object).collect();
        if items.len() < 2 || objects.len() < items.len() {
            return None;
        }
        let keys = column_keys(&objects)?;
        // Before any cell is made: a few large objects may make many small ones wide.
        if objects.iter().map(|object| object.len()).sum::<usize>() * 2 < objects.len() * keys.len() {
            return None;
        }
        let mut rows = Vec::with_capacity(objects.len());
        for object in &objects {
            let cells = keys.iter().map(|key| {
                object.get(*key).map_or(Some(String::new()), |value| cell_text(key, value, omission))
            });
            rows.push(cells.collect::<Option<Vec<String>>>()?);
        }
        let filled =
            |column: &usize| rows.iter().any(|row| row.get(*column).is_some_and(|cell| !cell.is_empty()));
        let shown: Vec<usize> = (0..keys.len()).filter(filled).collect();
        let cells = rows.iter().flatten().filter(|cell| !cell.is_empty()).count();
        if shown.is_empty() || cells * 2 < rows.len() * shown.len() {
            return None;
        }
        let columns = shown.iter().filter_map(|column| keys.get(*column)).map(|key| (*key).to_owned());
        let columns = columns.collect();
        for row in &mut rows {
            let cells = std::mem::take(row).into_iter().enumerate();
            row.extend(cells.filter(|(column, _)| shown.contains(column)).map(|(_, cell)| cell));
        }
        Self::new(columns, rows)
    }

    /// Two or more lists of scalars.
    pub fn of_lists(items: &[Value], omission: Omission) -> Option<Self> {
        let is_dropped = |cell: &&Value| omission.drops_digests() && cell.as_str().is_some_and(is_digest);
        let text = |cell| if is_dropped(&cell) { String::new() } else { list_item_text(cell) };
        let mut rows = Vec::with_capacity(items.len());
        for item in items {
            let cells = item.as_array().filter(|cells| cells.iter().all(is_line))?;
            rows.push(cells.iter().map(text).collect());
        }
        if rows.len() < 2 { None } else { Self::new(Vec::new(), rows) }
    }

    /// Rows without line breaks.
    pub fn of_rows(columns: &[String], rows: &[Vec<String>]) -> Option<Self> {
        if rows.iter().flatten().any(|cell| cell.contains('\n')) {
            return None;
        }
        Self::new(columns.to_vec(), rows.to_vec())
    }

    fn new(columns: Vec<String>, rows: Vec<Vec<String>>) -> Option<Self> {
        let has = |separator: char| {
            columns.iter().chain(rows.iter().flatten()).any(|cell| cell.contains(separator))
        };
        let separator = match (has('|'), has('\t')) {
            (false, _) => " | ",
            (true, false) => "\t",
            (true, true) => return None,
        };
        Some(Self { columns, rows, separator })
    }

    pub fn header(&self) -> String {
        self.columns.join(self.separator)
    }

    /// The rows as lines, without empty cells at their ends.
    pub fn rows(&self) -> impl Iterator<Item = String> {
        self.rows.iter().map(|row| {
            let end = row.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
            match row.get(..end).unwrap_or_default() {
                [] => "(empty)".to_owned(),
                cells => cells.join(self.separator),
            }
        })
    }
}

/// All keys in order of appearance; `None` if there are too many.
fn column_keys<'a>(objects: &[&'a Map<String, Value>]) -> Option<Vec<&'a str>> {
    let (mut keys, mut seen) = (Vec::new(), HashSet::new());
    for key in objects.iter().flat_map(|object| object.keys()) {
        if seen.insert(key.as_str()) {
            keys.push(key.as_str());
        }
        if keys.len() > MAX_COLUMNS || key.contains('\n') {
            return None;
        }
    }
    Some(keys)
}

/// A value on one line; `None` if it has more structure.
fn cell_text(key: &str, value: &Value, omission: Omission) -> Option<String> {
    match value {
        value if !says_something(key, value, omission) => Some(String::new()),
        value if is_empty(value) => Some(list_item_text(value)),
        Value::String(text) if omission.drops_digests() && is_digest(text) => Some(String::new()),
        Value::Array(items) => {
            let mut line = String::new();
            for item in items {
                let word = list_item_text(item);
                if !is_line(item) || word.contains(", ") || line.len() + word.len() > MAX_CELL_LIST_BYTES {
                    return None;
                }
                line.push_str(if line.is_empty() { "" } else { ", " });
                line.push_str(&word);
            }
            Some(line)
        }
        value => is_line(value).then(|| scalar_text(value)),
    }
}
