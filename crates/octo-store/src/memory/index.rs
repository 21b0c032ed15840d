//! What the index of words is told. Changes are gathered and written in the order of their rows at the end of a
//! transaction: the index makes a new part of itself each time the rows go backwards.

use super::words;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// Whose words they are stands before each of them: one owner's search never passes over another's rows, and how
/// rare a word is depends on nobody else.
pub(super) fn term(owner: i64, stem: &str) -> String {
    format!("{owner}_{stem}")
}

/// The word that all rows of a type have.
pub(super) fn kind_term(owner: i64, kind_folded: &str) -> String {
    let plain =
        |letter: char| if letter.is_ascii() && !letter.is_ascii_alphanumeric() { '_' } else { letter };
    format!("{owner}={}", kind_folded.chars().map(plain).collect::<String>())
}

/// The words of one row, always the same for the same texts. Rows of the past have no type: it may have changed since.
pub(super) fn row_words(owner: i64, side: Side, kind_folded: &str, texts: &[&str]) -> String {
    let stems: BTreeSet<String> = texts.iter().flat_map(|text| words::words(text)).collect();
    let kind = (side == Side::Live).then(|| kind_term(owner, kind_folded));
    let terms: Vec<String> = kind.into_iter().chain(stems.iter().map(|stem| term(owner, stem))).collect();
    terms.join(" ")
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Live,
    Past,
}

impl Side {
    const fn put(self) -> &'static str {
        match self {
            Self::Live => "INSERT INTO live_words (rowid, words) VALUES (?1, ?2)",
            Self::Past => "INSERT INTO past_words (rowid, words) VALUES (?1, ?2)",
        }
    }

    const fn take(self) -> &'static str {
        match self {
            Self::Live => "INSERT INTO live_words (live_words, rowid, words) VALUES ('delete', ?1, ?2)",
            Self::Past => "INSERT INTO past_words (past_words, rowid, words) VALUES ('delete', ?1, ?2)",
        }
    }
}

/// First what is taken out of a row, then what is put in.
#[derive(Default)]
struct Change {
    take: Option<String>,
    put: Option<String>,
}

#[derive(Default)]
pub(super) struct Changes {
    live: BTreeMap<i64, Change>,
    past: BTreeMap<i64, Change>,
}

impl Changes {
    fn row(&mut self, side: Side, row: i64) -> &mut Change {
        match side {
            Side::Live => self.live.entry(row).or_default(),
            Side::Past => self.past.entry(row).or_default(),
        }
    }

    pub(super) fn put(&mut self, side: Side, row: i64, words: String) {
        self.row(side, row).put = Some(words);
    }

    pub(super) fn take(&mut self, side: Side, row: i64, words: String) {
        let change = self.row(side, row);
        // What the same transaction has put in was never written.
        if change.put.take().is_none() {
            change.take = Some(words);
        }
    }

    /// Adds what a later job of the same transaction has changed.
    pub(super) fn merge(&mut self, later: Changes) {
        for (side, changes) in [(Side::Live, later.live), (Side::Past, later.past)] {
            for (row, Change { take, put }) in changes {
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
        for (side, changes) in [(Side::Live, self.live), (Side::Past, self.past)] {
            let (mut take, mut put) = (conn.prepare_cached(side.take())?, conn.prepare_cached(side.put())?);
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
