//! Updates of the word index. Changes are collected and written in row order at the end of a transaction: the
//! index starts a new segment each time the row ids decrease.

use octo_search::tokenize;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// Each word is prefixed with its owner: a search never scans rows of other owners, and word frequencies do
/// not depend on them.
pub(super) fn term(owner: i64, stem: &str) -> String {
    format!("{owner}_{stem}")
}

/// The word that all rows of a type have.
pub(super) fn kind_term(owner: i64, kind_folded: &str) -> String {
    let plain =
        |letter: char| if letter.is_ascii() && !letter.is_ascii_alphanumeric() { '_' } else { letter };
    format!("{owner}={}", kind_folded.chars().map(plain).collect::<String>())
}

/// The words of one row, deterministic for the same texts. Past rows have no type: it may have changed since.
pub(super) fn row_words(owner: i64, side: IndexSide, kind_folded: &str, texts: &[&str]) -> String {
    let stems: BTreeSet<String> = texts.iter().flat_map(|text| tokenize(text)).collect();
    let kind = (side == IndexSide::Live).then(|| kind_term(owner, kind_folded));
    let terms: Vec<String> = kind.into_iter().chain(stems.iter().map(|stem| term(owner, stem))).collect();
    terms.join(" ")
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexSide {
    Live,
    Past,
}

impl IndexSide {
    const fn insert_sql(self) -> &'static str {
        match self {
            Self::Live => "INSERT INTO live_words (rowid, words) VALUES (?1, ?2)",
            Self::Past => "INSERT INTO past_words (rowid, words) VALUES (?1, ?2)",
        }
    }

    const fn delete_sql(self) -> &'static str {
        match self {
            Self::Live => "INSERT INTO live_words (live_words, rowid, words) VALUES ('delete', ?1, ?2)",
            Self::Past => "INSERT INTO past_words (past_words, rowid, words) VALUES ('delete', ?1, ?2)",
        }
    }
}

/// First the words to remove from a row, then those to insert.
#[derive(Default)]
struct RowChange {
    take: Option<String>,
    put: Option<String>,
}

#[derive(Default)]
pub(super) struct IndexChanges {
    live: BTreeMap<i64, RowChange>,
    past: BTreeMap<i64, RowChange>,
}

impl IndexChanges {
    fn row(&mut self, side: IndexSide, row: i64) -> &mut RowChange {
        match side {
            IndexSide::Live => self.live.entry(row).or_default(),
            IndexSide::Past => self.past.entry(row).or_default(),
        }
    }

    pub(super) fn put(&mut self, side: IndexSide, row: i64, words: String) {
        self.row(side, row).put = Some(words);
    }

    pub(super) fn take(&mut self, side: IndexSide, row: i64, words: String) {
        let change = self.row(side, row);
        // Words inserted by the same transaction were never written.
        if change.put.take().is_none() {
            change.take = Some(words);
        }
    }

    /// Adds the changes of a later job of the same transaction.
    pub(super) fn merge(&mut self, later: IndexChanges) {
        for (side, changes) in [(IndexSide::Live, later.live), (IndexSide::Past, later.past)] {
            for (row, RowChange { take, put }) in changes {
                if let Some(words) = take {
                    self.take(side, row, words);
                }
                if let Some(words) = put {
                    self.put(side, row, words);
                }
            }
        }
    }

    pub(super) fn write(self, conn: &Connection) -> rusqlite::Result<()> {
        for (side, changes) in [(IndexSide::Live, self.live), (IndexSide::Past, self.past)] {
            let (mut take, mut put) =
                (conn.prepare_cached(side.delete_sql())?, conn.prepare_cached(side.insert_sql())?);
            for (row, change) in changes {
                if let Some(words) = change.take {
                    take.execute((row, words))?;
                }
                if let Some(words) = change.put {
                    put.execute((row, words))?;
                }
            }
        }
        Ok(())
    }
}
