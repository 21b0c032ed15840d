//! The chains of the log. Its own has no name. Those of other hubs came with a copy of a shared database; records are
//! added to them only when they are pruned.

use octo_ports::{Anchor, Hash};
use rusqlite::{Connection, OptionalExtension};

/// Name of the log's own chain.
pub(crate) const OWN: &str = "";

/// The rows of a chain, after `FROM`. `?1` is its name.
pub(crate) const fn rows(chain: &str) -> &'static str {
    if chain.is_empty() { "audit WHERE ?1 = ''" } else { "chain_records WHERE chain = ?1" }
}

/// Adds a record to a chain. The values are its name, the number, the hash and the record.
pub(crate) const fn insert_sql(chain: &str) -> &'static str {
    if chain.is_empty() {
        "INSERT INTO audit (seq, hash, record) VALUES (?2, ?3, ?4)"
    } else {
        "INSERT INTO chain_records (chain, seq, hash, record) VALUES (?1, ?2, ?3, ?4)"
    }
}

/// Names of the chains, in order. Its own is left out if there are only others.
pub(crate) fn names(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    // A file that an earlier version has written, and that is opened for reading.
    let is_known = conn
        .prepare_cached("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'chain_records'")?
        .exists(())?;
    if !is_known {
        return Ok(vec![OWN.to_owned()]);
    }
    let mut find = conn.prepare_cached(
        "WITH RECURSIVE found (chain) AS (
            SELECT min(chain) FROM chain_records
            UNION ALL
            SELECT (SELECT min(chain) FROM chain_records WHERE chain > found.chain) FROM found
            WHERE found.chain IS NOT NULL
         )
         SELECT chain FROM found WHERE chain IS NOT NULL",
    )?;
    let mut names: Vec<String> = find.query_map((), |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    if names.is_empty() || conn.prepare_cached("SELECT 1 FROM audit LIMIT 1")?.exists(())? {
        names.insert(0, OWN.to_owned());
    }
    Ok(names)
}

/// The first and the last record of a chain.
pub(crate) fn ends(conn: &Connection, chain: &str) -> rusqlite::Result<Option<(Anchor, Anchor)>> {
    let end = |order: &str| {
        let sql = format!("SELECT seq, hash FROM {} ORDER BY seq {order} LIMIT 1", rows(chain));
        let anchor = |row: &rusqlite::Row<'_>| {
            Ok(Anchor { seq: row.get::<_, i64>(0)?.cast_unsigned(), hash: Hash(row.get(1)?) })
        };
        conn.prepare_cached(&sql)?.query_row([chain], anchor).optional()
    };
    Ok(end("ASC")?.zip(end("DESC")?))
}

/// The last record of a chain, or its beginning.
pub(crate) fn head(conn: &Connection, chain: &str) -> rusqlite::Result<Anchor> {
    Ok(ends(conn, chain)?.map(|(_, last)| last).unwrap_or_default())
}
