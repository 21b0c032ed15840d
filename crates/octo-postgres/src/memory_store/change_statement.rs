//! One statement with all changes of a memory, however many rows.

use super::memory_transaction::MemoryOwner;
use super::name_key::name_key;
use crate::value::Value;
use octo_ports::memory::backend::{ITEM_OVERHEAD_BYTES, NO_END};
use octo_search::tokenize;
use std::collections::{BTreeMap, BTreeSet};

/// The words of one row, each one once.
pub(crate) fn row_words(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().flat_map(|text| tokenize(text)).collect()
}

/// Words and their rows, in the order of the index.
#[derive(Default)]
pub(super) struct WordList(BTreeSet<(String, i64)>);

impl WordList {
    pub(super) fn add(&mut self, row: i64, words: impl IntoIterator<Item = String>) {
        self.0.extend(words.into_iter().map(|word| (word, row)));
    }
}

/// Changes of the number of entities of each type: its name and the difference, by key.
#[derive(Default)]
pub(super) struct KindCounts(BTreeMap<String, (String, i64)>);

impl KindCounts {
    pub(super) fn add(&mut self, kind: &str, more: i64) {
        self.0.entry(name_key(kind)).or_insert_with(|| (kind.to_owned(), 0)).1 += more;
    }
}

/// Parts of the statement, with the values of all of them. `$1` is the owner, `$2` the tenant and `$3` the time. No two
/// parts may change the same row.
pub(super) struct ChangeStatement {
    parts: Vec<String>,
    values: Vec<Box<dyn Value + Send>>,
    removed_links: Option<usize>,
}

impl ChangeStatement {
    pub(super) fn new(owner: &MemoryOwner) -> Self {
        let values: [Box<dyn Value + Send>; 3] =
            [Box::new(owner.id), Box::new(owner.tenant.clone()), Box::new(owner.timestamp)];
        Self { parts: Vec::new(), values: values.into(), removed_links: None }
    }

    /// Adds a value and returns its place.
    pub(super) fn value(&mut self, value: impl Value + Send + 'static) -> String {
        self.values.push(Box::new(value));
        format!("${}", self.values.len())
    }

    pub(super) fn part(&mut self, sql: String) {
        self.parts.push(sql);
    }

    /// A part that removes relations, which counts for the quota.
    pub(super) fn part_removing_links(&mut self, sql: String) {
        self.removed_links = Some(self.parts.len());
        self.part(sql);
    }

    pub(super) fn add_words(&mut self, WordList(words): WordList) {
        if words.is_empty() {
            return;
        }
        let (words, rows): (Vec<String>, Vec<i64>) = words.into_iter().unzip();
        let (words, rows) = (self.value(words), self.value(rows));
        self.part(format!(
            "INSERT INTO memory_words (owner, tenant, past, word, row_id)
             SELECT $1, $2, false, word, row_id FROM unnest({words}::text[], {rows}::int8[]) AS w (word, row_id)"
        ));
    }

    pub(super) fn remove_words(&mut self, words: WordList, past: bool) {
        self.change_words("DELETE FROM memory_words m USING", words, past);
    }

    pub(super) fn end_words(&mut self, words: WordList) {
        self.change_words("UPDATE memory_words m SET past = true FROM", words, false);
    }

    fn change_words(&mut self, change: &str, WordList(words): WordList, past: bool) {
        if words.is_empty() {
            return;
        }
        let (words, rows): (Vec<String>, Vec<i64>) = words.into_iter().unzip();
        let (words, rows) = (self.value(words), self.value(rows));
        self.part(format!(
            "{change} unnest({words}::text[], {rows}::int8[]) AS w (word, row_id)
             WHERE m.owner = $1 AND m.past = {past} AND m.word = w.word AND m.row_id = w.row_id"
        ));
    }

    pub(super) fn count_kinds(&mut self, KindCounts(counts): KindCounts) {
        let changed = counts.into_iter().filter(|(_, (_, more))| *more != 0);
        let (keys, (kinds, more)): (Vec<String>, (Vec<String>, Vec<i64>)) = changed.unzip();
        if keys.is_empty() {
            return;
        }
        let (keys, kinds, more) = (self.value(keys), self.value(kinds), self.value(more));
        self.part(format!(
            "INSERT INTO memory_kinds (owner, tenant, kind_folded, kind, live)
             SELECT $1, $2, * FROM unnest({keys}::text[], {kinds}::text[], {more}::int8[])
             ON CONFLICT (owner, kind_folded) DO UPDATE SET live = memory_kinds.live + excluded.live"
        ));
    }

    /// Ends the current rows of a table that fulfil the condition.
    pub(super) fn end_rows(&mut self, table: &str, condition: &str) {
        self.part(format!(
            "UPDATE {table} SET until = $3 WHERE owner = $1 AND until = {NO_END} AND {condition}"
        ));
    }

    /// The statement, which ends with the owner, and its values.
    pub(super) fn finish(mut self, bytes: i64, last_entity: i64) -> (String, Vec<Box<dyn Value + Send>>) {
        let (bytes, last_entity) = (self.value(bytes), self.value(last_entity));
        let freed = match self.removed_links {
            Some(part) => format!("{ITEM_OVERHEAD_BYTES} * (SELECT count(*) FROM part{part})"),
            None => "0".to_owned(),
        };
        let parts = self.parts.iter().enumerate().map(|(at, part)| match self.removed_links == Some(at) {
            true => format!("part{at} AS ({part} RETURNING id)"),
            false => format!("part{at} AS ({part})"),
        });
        let with = match self.parts.is_empty() {
            true => String::new(),
            false => format!("WITH {}", parts.collect::<Vec<_>>().join(", ")),
        };
        let sql = format!(
            "{with} UPDATE memory_owners SET bytes = greatest({bytes} - {freed}, 0), last_entity = {last_entity},
                last_change = $3
             WHERE id = $1 AND tenant = $2"
        );
        (sql, self.values)
    }
}
