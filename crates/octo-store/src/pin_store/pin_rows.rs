//! Rows of pins. Everything happens in one transaction, so that concurrent processes never interleave.

use crate::result_files::now_micros;
use octo_ports::pins::{
    MAX_DEFINITION_BYTES, MAX_HELD_BYTES, MAX_PINNED_BYTES, MAX_SEEN_DEFINITIONS, MAX_VERSIONS_PER_ITEM,
};
use octo_ports::{PendingPin, Pin, PinDelta, PinSet, PinWrite, ServerIdentity};
use rusqlite::{OptionalExtension, Row, Transaction};
use std::collections::HashSet;

/// The file is compacted if more rows than these became shorter.
const MIN_COMPACTED_ROWS: usize = 100;

/// Loads the pins of a server, and whether stored text was removed.
pub fn load(change: &Transaction<'_>, whose: &ServerIdentity) -> rusqlite::Result<(PinSet, bool)> {
    adopt_renamed(change, whose)?;
    let is_shorter = remove_excess(change, &whose.server)?;
    change
        .prepare_cached(
            "INSERT INTO servers (server, identity, revision) VALUES (?1, ?2, 0)
         ON CONFLICT (server) DO UPDATE SET identity = ?2 WHERE identity <> ?2",
        )?
        .execute((&whose.server, &whose.identity))?;
    let mut find = change.prepare_cached("SELECT what, key, hash, text FROM pins WHERE server = ?1")?;
    let pins: Vec<Option<Pin>> =
        find.query_map([&whose.server], pin_from_row)?.collect::<rusqlite::Result<_>>()?;
    let mut taken = HashSet::new();
    let mut theirs = change
        .prepare_cached("SELECT key FROM pins WHERE server = ?1 AND what IN ('resource', 'template')")?;
    for other in &whose.others {
        for key in theirs.query_map([other], |row| row.get::<_, String>(0))? {
            taken.insert(key?);
        }
    }
    let pins = pins.into_iter().flatten().collect();
    let revision = revision(change, &whose.server)?;
    Ok((PinSet { pins, uris_of_others: taken, revision }, is_shorter))
}

/// Earlier versions stored definitions of any size. What exceeds the limits keeps its hash, so that it is still pinned: the
/// same definition passes, and any other is held.
fn remove_excess(change: &Transaction<'_>, server: &str) -> rusqlite::Result<bool> {
    let mut removed = 0;
    for (excess, limit) in [
        ("UPDATE pins SET text = 'null' WHERE server = ?1 AND octet_length(text) > ?2", MAX_DEFINITION_BYTES),
        (
            "UPDATE pins SET text = 'null' WHERE octet_length(text) > 4 AND rowid IN (SELECT id FROM (
                 SELECT rowid AS id, sum(octet_length(text)) OVER (ORDER BY rowid) AS total
                 FROM pins WHERE server = ?1) WHERE total > ?2)",
            MAX_PINNED_BYTES,
        ),
        ("DELETE FROM seen WHERE server = ?1 AND octet_length(text) > ?2", MAX_DEFINITION_BYTES),
        (
            "DELETE FROM seen WHERE rowid IN (SELECT id FROM (
                 SELECT rowid AS id, sum(octet_length(text)) OVER (ORDER BY rowid) AS total
                 FROM seen WHERE server = ?1 AND pending = 1) WHERE total > ?2)",
            MAX_HELD_BYTES,
        ),
        ("UPDATE seen SET text = 'null' WHERE server = ?1 AND pending = 0 AND octet_length(text) > ?2", 4),
    ] {
        removed += change.prepare_cached(excess)?.execute((server, limit as i64))?;
    }
    Ok(removed > MIN_COMPACTED_ROWS)
}

/// A name without pins copies those of the same server under another name, which is no longer configured.
fn adopt_renamed(change: &Transaction<'_>, whose: &ServerIdentity) -> rusqlite::Result<()> {
    let known =
        change.prepare_cached("SELECT 1 FROM pins WHERE server = ?1 LIMIT 1")?.exists([&whose.server])?;
    if known || whose.identity.is_empty() {
        return Ok(());
    }
    let mut find = change.prepare_cached(
        "SELECT server FROM servers WHERE identity = ?1 AND server <> ?2
         AND EXISTS (SELECT 1 FROM pins WHERE pins.server = servers.server)
         ORDER BY rowid DESC",
    )?;
    let names = find.query_map((&whose.identity, &whose.server), |row| row.get::<_, String>(0))?;
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    let Some(other) = names.into_iter().find(|name| !whose.others.contains(name)) else { return Ok(()) };
    for copy in [
        "INSERT OR IGNORE INTO pins SELECT ?1, what, key, hash, text, since FROM pins WHERE server = ?2",
        "INSERT OR IGNORE INTO seen SELECT ?1, what, key, hash, text, since, pending FROM seen WHERE server = ?2",
    ] {
        change.prepare_cached(copy)?.execute((&whose.server, &other))?;
    }
    Ok(())
}

fn pin_from_row(row: &Row<'_>) -> rusqlite::Result<Option<Pin>> {
    Ok(Pin::from_stored(&row.get::<_, String>(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

pub fn write(change: &Transaction<'_>, server: &str, news: &PinDelta) -> rusqlite::Result<PinWrite> {
    if is_conflict(change, server, news)? {
        return Ok(PinWrite::Conflict);
    }
    for pin in news.pinned() {
        put_pin(change, server, pin)?;
    }
    change
        .prepare_cached("UPDATE seen SET pending = 0 WHERE server = ?1 AND pending = 1")?
        .execute([server])?;
    let mut fresh = Vec::new();
    for (pin, pending) in news.seen() {
        if record_seen(change, server, pin, pending)? {
            fresh.push(pin.clone());
        }
    }
    change
        .prepare_cached(
            "DELETE FROM seen WHERE rowid IN (SELECT rowid FROM seen WHERE server = ?1 AND pending = 0
             ORDER BY rowid DESC LIMIT -1 OFFSET ?2)",
        )?
        .execute((server, MAX_SEEN_DEFINITIONS))?;
    Ok(PinWrite::Written(fresh))
}

fn is_conflict(change: &Transaction<'_>, server: &str, news: &PinDelta) -> rusqlite::Result<bool> {
    let mut find =
        change.prepare_cached("SELECT hash FROM pins WHERE server = ?1 AND what = ?2 AND key = ?3")?;
    news.is_overtaken(|pin| {
        find.query_row((server, pin.kind.as_str(), &pin.key), |row| row.get::<_, String>(0)).optional()
    })
}

fn put_pin(change: &Transaction<'_>, server: &str, pin: &Pin) -> rusqlite::Result<()> {
    change
        .prepare_cached(
            "INSERT OR REPLACE INTO pins (server, what, key, hash, text, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute((server, pin.kind.as_str(), &pin.key, &pin.hash, pin.text.as_str(), now_micros()))?;
    Ok(())
}

/// Records a definition; returns whether it should be reported.
fn record_seen(change: &Transaction<'_>, server: &str, pin: &Pin, pending: bool) -> rusqlite::Result<bool> {
    // Of what is not held, only the hash is used.
    let text = if pending { pin.text.as_str() } else { "null" };
    let again = change
        .prepare_cached(
            "UPDATE seen SET pending = ?5, text = ?6 WHERE server = ?1 AND what = ?2 AND key = ?3 AND hash = ?4",
        )?
        .execute((server, pin.kind.as_str(), &pin.key, &pin.hash, pending, text))?;
    if again > 0 {
        return Ok(false);
    }
    let place = (server, pin.kind.as_str(), &pin.key);
    let count: i64 = change
        .prepare_cached("SELECT count(*) FROM seen WHERE server = ?1 AND what = ?2 AND key = ?3")?
        .query_row(place, |row| row.get(0))?;
    let is_full = count >= i64::from(MAX_VERSIONS_PER_ITEM);
    if is_full {
        change
            .prepare_cached(
                "DELETE FROM seen WHERE rowid IN (SELECT rowid FROM seen
                 WHERE server = ?1 AND what = ?2 AND key = ?3 AND pending = 0 ORDER BY rowid LIMIT 1)",
            )?
            .execute(place)?;
    }
    change
        .prepare_cached(
            "INSERT INTO seen (server, what, key, hash, text, since, pending) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((server, pin.kind.as_str(), &pin.key, &pin.hash, text, now_micros(), pending))?;
    Ok(!is_full)
}

pub fn revision(change: &Transaction<'_>, server: &str) -> rusqlite::Result<u64> {
    let found: Option<i64> = change
        .prepare_cached("SELECT revision FROM servers WHERE server = ?1")?
        .query_row([server], |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or_default().cast_unsigned())
}

pub fn pending(change: &Transaction<'_>, server: &str) -> rusqlite::Result<Vec<PendingPin>> {
    let mut waiting = change.prepare_cached(
        "SELECT what, key, hash, text, since FROM seen WHERE server = ?1 AND pending = 1 ORDER BY what, key, rowid",
    )?;
    let rows: Vec<(Option<Pin>, i64)> = waiting
        .query_map([server], |row| Ok((pin_from_row(row)?, row.get(4)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut find = change.prepare_cached(
        "SELECT what, key, hash, text FROM pins WHERE server = ?1 AND what = ?2 AND key = ?3",
    )?;
    let mut all = Vec::new();
    for (new, since) in rows {
        let Some(new) = new else { continue };
        let pinned =
            find.query_row((server, new.kind.as_str(), &new.key), pin_from_row).optional()?.flatten();
        all.push(PendingPin { new, pinned, since });
    }
    Ok(all)
}

pub fn accept(change: &Transaction<'_>, server: &str, chosen: &[Pin]) -> rusqlite::Result<usize> {
    let mut count = 0;
    for one in chosen {
        let place = (server, one.kind.as_str(), &one.key, &one.hash);
        let waiting = change
            .prepare_cached(
                "SELECT what, key, hash, text FROM seen
                 WHERE server = ?1 AND what = ?2 AND key = ?3 AND hash = ?4 AND pending = 1",
            )?
            .query_row(place, pin_from_row)
            .optional()?
            .flatten();
        let Some(waiting) = waiting else { continue };
        put_pin(change, server, &waiting)?;
        change
            .prepare_cached(
                "UPDATE seen SET pending = 0 WHERE server = ?1 AND what = ?2 AND key = ?3 AND hash = ?4",
            )?
            .execute(place)?;
        count += 1;
    }
    change
        .prepare_cached(
            "INSERT INTO servers (server, identity, revision) VALUES (?1, '', 1)
             ON CONFLICT (server) DO UPDATE SET revision = revision + 1",
        )?
        .execute([server])?;
    Ok(count)
}
