//! Rows of pins.

use crate::transaction::Transaction;
use crate::value::Value;
use octo_ports::pins::{MAX_SEEN_DEFINITIONS, MAX_VERSIONS_PER_ITEM};
use octo_ports::{PendingPin, Pin, PinDelta, PinKind, PinSet, ServerIdentity, StoreResult};
use std::collections::{BTreeMap, HashMap};
use tokio_postgres::Row;

/// The server `$1` under another name, if the name has no pins: of the same identity `$2`, and none of the configured
/// servers `$3`.
const RENAMED: &str = "
    SELECT other.server FROM pin_servers other
    WHERE $2 <> '' AND other.identity = $2 AND other.server <> $1 AND other.server <> ALL ($3)
    AND EXISTS (SELECT FROM pins WHERE pins.server = other.server)
    AND NOT EXISTS (SELECT FROM pins WHERE pins.server = $1)
    ORDER BY other.position DESC LIMIT 1";

pub(super) const FIND_PENDING: &str = "SELECT FROM seen_pins WHERE server = $1 AND is_pending LIMIT 1";

pub(super) const PENDING: &str = "
    SELECT seen.kind, seen.key, seen.hash, seen.text, seen.since, pins.hash, pins.text
    FROM seen_pins seen LEFT JOIN pins USING (server, kind, key_digest)
    WHERE seen.server = $1 AND seen.is_pending
    ORDER BY seen.kind, seen.key, seen.position";

/// What is stored about a server.
#[derive(Default)]
pub(super) struct StoredPins {
    /// `None` for an unknown server.
    pub(super) identity: Option<String>,
    pub(super) set: PinSet,
    /// Whether there are pins of another name to take over.
    pub(super) is_renamed: bool,
}

/// Records of all kinds have the same columns, so that one statement reads them.
pub(super) fn load_sql() -> String {
    format!(
        "SELECT 'server', '', ''::bytea, identity, '', revision FROM pin_servers WHERE server = $1
         UNION ALL SELECT 'pin', kind, key, hash, text, 0 FROM pins WHERE server = $1
         UNION ALL SELECT 'uri', kind, key, '', '', 0 FROM pins
             WHERE server = ANY ($3) AND kind IN ('resource', 'template')
         UNION ALL SELECT 'renamed', '', ''::bytea, '', '', 0 FROM ({RENAMED}) renamed"
    )
}

pub(super) fn stored_pins(rows: &[Row]) -> StoredPins {
    let mut stored = StoredPins::default();
    for row in rows {
        match row.get(0) {
            "server" => {
                stored.identity = Some(row.get(3));
                stored.set.revision = row.get::<_, i64>(5).cast_unsigned();
            }
            "pin" => stored.set.pins.extend(pin_from_row(row, 1)),
            "uri" => stored.set.uris_of_others.extend(String::from_utf8(row.get(2)).ok()),
            _ => stored.is_renamed = true,
        }
    }
    stored
}

/// A pin from four columns, starting at this index.
fn pin_from_row(row: &Row, first: usize) -> Option<Pin> {
    let key = String::from_utf8(row.get(first + 1)).ok()?;
    Pin::from_stored(row.get(first), key, row.get(first + 2), row.get(first + 3))
}

pub(super) fn pending_from_row(row: &Row) -> Option<PendingPin> {
    let new = pin_from_row(row, 0)?;
    let pinned = row.get::<_, Option<String>>(5).zip(row.get(6));
    let pinned =
        pinned.and_then(|(hash, text)| Pin::from_stored(new.kind.as_str(), new.key.clone(), hash, text));
    Some(PendingPin { new, pinned, since: row.get(4) })
}

/// Columns of many pins.
#[derive(Default)]
struct PinColumns<'a> {
    kinds: Vec<&'a str>,
    keys: Vec<&'a [u8]>,
    hashes: Vec<&'a str>,
    texts: Vec<&'a str>,
}

impl<'a> FromIterator<&'a Pin> for PinColumns<'a> {
    fn from_iter<T: IntoIterator<Item = &'a Pin>>(pins: T) -> Self {
        let mut columns = Self::default();
        for pin in pins {
            columns.kinds.push(pin.kind.as_str());
            columns.keys.push(pin.key.as_bytes());
            columns.hashes.push(&pin.hash);
            columns.texts.push(pin.text.as_str());
        }
        columns
    }
}

/// Locks the server's row, which is created if need be.
pub(super) async fn lock_server(transaction: &mut Transaction, server: &str) -> StoreResult<()> {
    let lock = "SELECT FROM pin_servers WHERE server = $1 FOR UPDATE";
    if transaction.query_opt(lock, &[&server]).await?.is_some() {
        return Ok(());
    }
    let create = "INSERT INTO pin_servers (server, identity) VALUES ($1, '') ON CONFLICT DO NOTHING";
    if transaction.execute(create, &[&server]).await? == 0 {
        transaction.query(lock, &[&server]).await?;
    }
    Ok(())
}

/// Stores the identity, and locks the server's row.
pub(super) async fn put_identity(transaction: &mut Transaction, whose: &ServerIdentity) -> StoreResult<()> {
    let put = "INSERT INTO pin_servers (server, identity) VALUES ($1, $2)
               ON CONFLICT (server) DO UPDATE SET identity = excluded.identity";
    transaction.execute(put, &[&whose.server, &whose.identity]).await.map(drop)
}

/// A name without pins copies those of the same server under another name, which is no longer configured.
pub(super) async fn adopt_renamed(transaction: &mut Transaction, whose: &ServerIdentity) -> StoreResult<()> {
    let copy = format!(
        "WITH renamed AS ({RENAMED}), copied AS (
            INSERT INTO pins (server, kind, key, hash, text)
            SELECT $1, kind, key, hash, text FROM pins JOIN renamed USING (server)
        )
        INSERT INTO seen_pins (server, kind, key, hash, text, since, is_pending)
        SELECT $1, kind, key, hash, text, since, is_pending FROM seen_pins JOIN renamed USING (server)
        ORDER BY position
        ON CONFLICT DO NOTHING"
    );
    transaction.execute(&copy, &[&whose.server, &whose.identity, &whose.others]).await.map(drop)
}

pub(super) async fn is_overtaken(
    transaction: &mut Transaction,
    server: &str,
    news: &PinDelta,
) -> StoreResult<bool> {
    let PinColumns { kinds, keys, .. } = news.pinned().collect();
    if keys.is_empty() {
        return Ok(false);
    }
    let find = "SELECT DISTINCT pins.kind, pins.key, pins.hash
        FROM unnest($2::text[], $3::bytea[]) AS news (kind, key)
        JOIN pins ON pins.server = $1 AND pins.kind = news.kind AND pins.key_digest = sha256(news.key)";
    let rows = transaction.query(find, &[&server, &kinds, &keys]).await?;
    let hashes: HashMap<(&str, &[u8]), &str> =
        rows.iter().map(|row| ((row.get(0), row.get(1)), row.get(2))).collect();
    news.is_overtaken(|pin| {
        Ok(hashes.get(&(pin.kind.as_str(), pin.key.as_bytes())).map(|hash| (*hash).to_owned()))
    })
}

/// Returns whether anything has changed.
pub(super) async fn put_pins(
    transaction: &mut Transaction,
    server: &str,
    news: &PinDelta,
) -> StoreResult<bool> {
    // Of several for one item, the last one.
    let pins: BTreeMap<(PinKind, &str), &Pin> =
        news.pinned().map(|pin| ((pin.kind, pin.key.as_str()), pin)).collect();
    if pins.is_empty() {
        return Ok(false);
    }
    let put = "INSERT INTO pins (server, kind, key, hash, text)
        SELECT $1, * FROM unnest($2::text[], $3::bytea[], $4::text[], $5::text[])
        ON CONFLICT (server, kind, key_digest) DO UPDATE SET hash = excluded.hash, text = excluded.text
        WHERE pins.hash <> excluded.hash OR pins.text <> excluded.text";
    let PinColumns { kinds, keys, hashes, texts } = pins.into_values().collect();
    Ok(transaction.execute(put, &[&server, &kinds, &keys, &hashes, &texts]).await? > 0)
}

pub(super) struct SeenPins {
    /// Definitions that should be reported.
    pub(super) fresh: Vec<Pin>,
    pub(super) is_changed: bool,
}

/// Records what is held or reported; nothing else is held any more.
pub(super) async fn record_seen(
    transaction: &mut Transaction,
    server: &str,
    news: &PinDelta,
) -> StoreResult<SeenPins> {
    let record = "WITH news AS (
            SELECT kind, key, sha256(key) AS key_digest, hash, text, is_pending, number
            FROM unnest($2::text[], $3::bytea[], $4::text[], $5::text[], $6::bool[])
            WITH ORDINALITY AS news (kind, key, hash, text, is_pending, number)
        ), fresh AS (
            SELECT news.*, row_number() OVER (PARTITION BY kind, key_digest ORDER BY number) + (
                SELECT count(*) FROM seen_pins
                WHERE server = $1 AND seen_pins.kind = news.kind AND seen_pins.key_digest = news.key_digest
            ) AS version
            FROM news WHERE NOT EXISTS (
                SELECT FROM seen_pins WHERE server = $1 AND seen_pins.kind = news.kind
                AND seen_pins.key_digest = news.key_digest AND seen_pins.hash = news.hash
            )
        ), updated AS (
            UPDATE seen_pins SET is_pending = NOT is_pending
            WHERE server = $1 AND is_pending <> (
                (kind, key_digest, hash) IN (SELECT kind, key_digest, hash FROM news WHERE is_pending)
            )
            RETURNING position
        ), inserted AS (
            INSERT INTO seen_pins (server, kind, key, hash, text, is_pending)
            SELECT $1, kind, key, hash, text, is_pending FROM fresh ORDER BY number
            RETURNING position
        )
        SELECT (SELECT count(*) FROM updated) + (SELECT count(*) FROM inserted),
            ARRAY (SELECT number FROM fresh WHERE version <= $7 ORDER BY number)";
    let seen = distinct_seen(news);
    let PinColumns { kinds, keys, hashes, texts } = seen.iter().map(|(pin, _)| *pin).collect();
    let is_pending: Vec<bool> = seen.iter().map(|(_, is_pending)| *is_pending).collect();
    let limit = i64::from(MAX_VERSIONS_PER_ITEM);
    let values: [&dyn Value; 7] = [&server, &kinds, &keys, &hashes, &texts, &is_pending, &limit];
    let row = transaction.query_opt(record, &values).await?;
    let (changed, numbers) =
        row.map_or((0, Vec::new()), |row| (row.get::<_, i64>(0), row.get::<_, Vec<i64>>(1)));
    if changed > 0 {
        remove_old(transaction, server).await?;
    }
    let reported = numbers.iter().filter_map(|number| seen.get(usize::try_from(number - 1).ok()?));
    Ok(SeenPins { fresh: reported.map(|(pin, _)| (*pin).clone()).collect(), is_changed: changed > 0 })
}

/// Each definition once. What is both held and reported is not held.
fn distinct_seen(news: &PinDelta) -> Vec<(&Pin, bool)> {
    let mut seen: Vec<(&Pin, bool)> = Vec::new();
    let mut places: HashMap<(PinKind, &str, &str), usize> = HashMap::new();
    for (pin, is_pending) in news.seen() {
        let place = *places.entry((pin.kind, &pin.key, &pin.hash)).or_insert(seen.len());
        match seen.get_mut(place) {
            Some((_, known)) => *known = is_pending,
            None => seen.push((pin, is_pending)),
        }
    }
    seen
}

/// Removes the oldest definitions beyond the limits, except those that wait for a decision.
async fn remove_old(transaction: &mut Transaction, server: &str) -> StoreResult<()> {
    let remove = "DELETE FROM seen_pins WHERE server = $1 AND position IN (
            SELECT position FROM (
                SELECT position, is_pending,
                    row_number() OVER (PARTITION BY kind, key_digest ORDER BY is_pending DESC, position DESC) AS version,
                    row_number() OVER (PARTITION BY is_pending ORDER BY position DESC) AS age
                FROM seen_pins WHERE server = $1
            ) ranked
            WHERE NOT is_pending AND (version > $2 OR age > $3)
        )";
    let limits = [i64::from(MAX_VERSIONS_PER_ITEM), i64::from(MAX_SEEN_DEFINITIONS)];
    transaction.execute(remove, &[&server, &limits[0], &limits[1]]).await.map(drop)
}

/// Returns how many of them were still waiting.
pub(super) async fn accept(
    transaction: &mut Transaction,
    server: &str,
    chosen: &[Pin],
) -> StoreResult<usize> {
    let accept = "WITH chosen AS (
            SELECT kind, sha256(key) AS key_digest, hash, max(number) AS number
            FROM unnest($2::text[], $3::bytea[], $4::text[]) WITH ORDINALITY AS chosen (kind, key, hash, number)
            GROUP BY 1, 2, 3
        ), accepted AS (
            UPDATE seen_pins seen SET is_pending = false FROM chosen
            WHERE seen.server = $1 AND seen.is_pending AND seen.kind = chosen.kind
                AND seen.key_digest = chosen.key_digest AND seen.hash = chosen.hash
            RETURNING seen.kind, seen.key, seen.hash, seen.text, chosen.number
        ), put AS (
            INSERT INTO pins (server, kind, key, hash, text)
            SELECT DISTINCT ON (kind, key) $1, kind, key, hash, text FROM accepted ORDER BY kind, key, number DESC
            ON CONFLICT (server, kind, key_digest) DO UPDATE SET hash = excluded.hash, text = excluded.text
        ), decided AS (
            UPDATE pin_servers SET revision = revision + 1 WHERE server = $1
        )
        SELECT count(*) FROM accepted";
    let PinColumns { kinds, keys, hashes, .. } = chosen.iter().collect();
    let count = transaction.query_opt(accept, &[&server, &kinds, &keys, &hashes]).await?;
    let count = count.map_or(0, |row| row.get::<_, i64>(0));
    Ok(usize::try_from(count).unwrap_or_default())
}
