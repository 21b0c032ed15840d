//! What the backends of the memory have in common: the form of their rows, limits of replies, and sizes for the quota.
//! Every row has a period of validity, in microseconds since 1970.

use super::{EntityRelation, FactOrigin, KnownEntity, KnownFact, NameMatch};
use jiff::Timestamp;
use std::collections::BTreeSet;

/// End of rows that are still valid.
pub const NO_END: i64 = i64::MAX;
/// A time after everything and before [`NO_END`].
pub const NOW: i64 = NO_END - 1;

/// Maximum relations shown with one entity.
pub const MAX_LINKS: usize = 100;
/// Maximum similar names for one that does not exist.
pub const MAX_NEAREST: usize = 3;
/// Maximum types that a list counts.
pub const MAX_KINDS: usize = 20;
/// Maximum entities scanned for a past state.
pub const MAX_PAST_SCAN: i64 = 100_000;

/// Approximate overhead of an item beside its text, so that empty ones count, too.
pub const ITEM_OVERHEAD_BYTES: i64 = 64;

/// Size of an item for the quota.
pub fn quota_size(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX).saturating_add(ITEM_OVERHEAD_BYTES)
}

pub fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}

impl FactOrigin {
    /// Number in a row.
    pub const fn code(self) -> i64 {
        match self {
            Self::Stated => 0,
            Self::Sourced => 1,
            Self::Imported => 2,
        }
    }

    pub const fn from_code(code: i64) -> Self {
        match code {
            0 => Self::Stated,
            1 => Self::Sourced,
            _ => Self::Imported,
        }
    }

    /// The last code that a query includes.
    pub const fn max_code(stated_only: bool) -> i64 {
        if stated_only { 0 } else { i64::MAX }
    }
}

/// Of the current entities whose names differ at most in case and whitespace, the one that a name means. One with
/// another spelling must be the only one, and of the right type.
pub fn select_by_name<T>(
    alike: impl IntoIterator<Item = T>,
    name: &str,
    names: NameMatch,
    name_of: impl Fn(&T) -> &str,
    is_of_kind: impl Fn(&T) -> bool,
) -> Option<T> {
    let mut alike: Vec<T> = alike.into_iter().collect();
    if let Some(at) = alike.iter().position(|entity| name_of(entity) == name) {
        return Some(alike.swap_remove(at));
    }
    let only = if alike.len() == 1 { alike.pop() } else { None };
    only.filter(|entity| names == NameMatch::Alike && is_of_kind(entity))
}

/// Of entities whose names differ at most in case and whitespace: the exact match, or else all of them.
pub fn exact_or_alike(mut alike: Vec<EntityHead>, name: &str) -> Vec<EntityHead> {
    if let Some(at) = alike.iter().position(|head| head.name == name) {
        alike = vec![alike.swap_remove(at)];
    }
    alike
}

/// An entity without its observations.
pub struct EntityHead {
    pub id: i64,
    pub name: String,
    pub kind: String,
    pub fact_count: i64,
    pub since: i64,
    pub updated: i64,
}

/// An observation and its row.
#[derive(Clone)]
pub struct FactRow {
    pub row: i64,
    pub fact: KnownFact,
}

/// Which relations to include.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LinkScope {
    None,
    /// Up to [`MAX_LINKS`].
    Limited,
    /// All that start here.
    AllOutward,
}

impl LinkScope {
    /// Number of relations to read, of each direction.
    pub const fn limit(self) -> i64 {
        match self {
            Self::None => 0,
            Self::Limited => MAX_LINKS as i64 + 1,
            Self::AllOutward => i64::MAX,
        }
    }
}

/// The matching observations, then the newest.
pub fn complete_facts(mut matching: Vec<FactRow>, newest: Vec<FactRow>, limit: usize) -> Vec<FactRow> {
    matching.truncate(limit);
    let known: BTreeSet<i64> = matching.iter().map(|fact| fact.row).collect();
    let room = limit - matching.len();
    matching.extend(newest.into_iter().filter(|fact| !known.contains(&fact.row)).take(room));
    matching
}

impl EntityHead {
    /// With these observations, which are sorted, and relations, as of a time.
    pub fn into_known(
        self,
        mut facts: Vec<FactRow>,
        mut links: Vec<EntityRelation>,
        scope: LinkScope,
        at: i64,
    ) -> KnownEntity {
        facts.sort_by_key(|fact| fact.row);
        let links_left_out = scope != LinkScope::AllOutward && links.len() > MAX_LINKS;
        if links_left_out {
            links.truncate(MAX_LINKS);
        }
        KnownEntity {
            name: self.name,
            kind: self.kind,
            facts: facts.into_iter().map(|fact| fact.fact).collect(),
            fact_count: self.fact_count.cast_unsigned(),
            links,
            links_left_out,
            created: timestamp(self.since),
            updated: timestamp(self.updated.min(at)),
            score: None,
        }
    }
}
