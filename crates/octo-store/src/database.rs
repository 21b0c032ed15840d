//! Opening and migrating the database files.

use crate::{Durability, SqliteError, private_files};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Timeout for another process that writes.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the end of another process is waited for.
const ALONE_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of the write-ahead log that stay when it is empty.
const MAX_LOG_BYTES: i64 = 4 << 20;

const WAL_RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// A database file with its migrations.
pub(crate) struct DatabaseSpec {
    pub(crate) file: &'static str,
    /// Step `n` migrates from version `n` to `n + 1`.
    pub(crate) migrations: &'static [&'static str],
}

/// The audit log and the index of stored results. Its own chain is `audit`; those of other hubs, from a shared database,
/// are `chain_records`.
pub(crate) const AUDIT_DATABASE: DatabaseSpec = DatabaseSpec {
    file: "octoprox.db",
    migrations: &[
        "
    CREATE TABLE audit (
        seq INTEGER PRIMARY KEY,
        hash BLOB NOT NULL,
        record BLOB NOT NULL
    ) STRICT;
    CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit is only ever appended to'); END;
    CREATE TRIGGER audit_never_shrinks BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit is only ever appended to'); END;
    CREATE TABLE spills (
        id INTEGER PRIMARY KEY,
        handle TEXT NOT NULL UNIQUE,
        subject TEXT NOT NULL,
        tenant TEXT NOT NULL,
        call TEXT NOT NULL,
        size INTEGER NOT NULL,
        created INTEGER NOT NULL
    ) STRICT;
",
        "
    CREATE TABLE audit_pruned (seq INTEGER NOT NULL) STRICT;
    DROP TRIGGER audit_never_shrinks;
    CREATE TRIGGER audit_never_shrinks BEFORE DELETE ON audit
        WHEN OLD.seq > coalesce((SELECT max(seq) FROM audit_pruned), 0)
        BEGIN SELECT RAISE(ABORT, 'the audit is only ever appended to'); END;
",
        "
    CREATE TABLE chain_records (
        chain TEXT NOT NULL,
        seq INTEGER NOT NULL,
        hash BLOB NOT NULL,
        record BLOB NOT NULL,
        PRIMARY KEY (chain, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE chains_pruned (chain TEXT NOT NULL PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
    CREATE TRIGGER chains_never_change BEFORE UPDATE ON chain_records
        BEGIN SELECT RAISE(ABORT, 'the audit is only ever appended to'); END;
    CREATE TRIGGER chains_never_shrink BEFORE DELETE ON chain_records
        WHEN OLD.seq > coalesce((SELECT seq FROM chains_pruned WHERE chain = OLD.chain), 0)
        BEGIN SELECT RAISE(ABORT, 'the audit is only ever appended to'); END;
",
    ],
};

/// Opens the audit log of `dir` for writing; creates or migrates it first.
pub(crate) fn open_audit(dir: &Path, durability: Durability) -> Result<Connection, SqliteError> {
    AUDIT_DATABASE.open(dir, durability)
}

/// Opens the audit log of `dir` for reading, concurrently with a writer.
pub(crate) fn read_audit(dir: &Path) -> Result<Connection, SqliteError> {
    AUDIT_DATABASE.read(dir)
}

/// The file of the audit log of `dir`.
pub(crate) fn audit_file(dir: &Path) -> PathBuf {
    dir.join(AUDIT_DATABASE.file)
}

impl DatabaseSpec {
    pub(crate) fn open(&self, dir: &Path, durability: Durability) -> Result<Connection, SqliteError> {
        let path = self.path(dir)?;
        private_files::create_private_file(&path)?;
        let mut conn = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let mode = enable_wal(&conn)?;
        if mode != "wal" {
            return Err(SqliteError::NoWal { path, mode });
        }
        conn.pragma_update(None, "synchronous", durability.synchronous())?;
        conn.pragma_update(None, "journal_size_limit", MAX_LOG_BYTES)?;
        self.migrate(&mut conn, &path)?;
        Ok(conn)
    }

    /// Opens the file, if it exists, for this process alone: fails if another one has it open, and keeps others out.
    pub(crate) fn open_alone(&self, dir: &Path) -> Result<Option<Connection>, SqliteError> {
        let path = self.path(dir)?;
        if !path.is_file() {
            return Ok(None);
        }
        let mut conn = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        conn.busy_timeout(ALONE_TIMEOUT)?;
        conn.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        // The first access takes the lock.
        let version = self
            .version(&conn, &path)
            .and_then(|_| Ok(conn.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))?));
        match version {
            Err(SqliteError::Database(error))
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) =>
            {
                return Err(SqliteError::InUse { path });
            }
            version => version?,
        }
        self.migrate(&mut conn, &path)?;
        Ok(Some(conn))
    }

    pub(crate) fn read(&self, dir: &Path) -> Result<Connection, SqliteError> {
        let path = self.path(dir)?;
        if !path.is_file() {
            return Err(SqliteError::Missing { path });
        }
        let conn = connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        if self.version(&conn, &path)? == 0 {
            return Err(SqliteError::Missing { path });
        }
        Ok(conn)
    }

    /// Absolute, so that no name can be parsed as a SQLite `file:` URI.
    fn path(&self, dir: &Path) -> Result<PathBuf, SqliteError> {
        let dir = std::path::absolute(dir).map_err(SqliteError::file(dir))?;
        Ok(dir.join(self.file))
    }

    fn latest_version(&self) -> i64 {
        self.migrations.len().cast_signed() as i64
    }

    fn version(&self, conn: &Connection, path: &Path) -> Result<i64, SqliteError> {
        let found = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if found > self.latest_version() {
            return Err(SqliteError::Newer { path: path.to_owned(), found, known: self.latest_version() });
        }
        Ok(found)
    }

    fn migrate(&self, conn: &mut Connection, path: &Path) -> Result<(), SqliteError> {
        if self.version(conn, path)? == self.latest_version() {
            return Ok(());
        }
        let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Checked again: another process may have migrated first.
        let from = self.version(&change, path)?;
        for step in self.migrations.iter().skip(usize::try_from(from).unwrap_or_default()) {
            change.execute_batch(step)?;
        }
        change.pragma_update(None, "user_version", self.latest_version())?;
        change.commit()?;
        Ok(())
    }
}

/// Switches to a write-ahead log and returns the resulting mode. SQLite does not wait for other connections that do the
/// same to a new file.
fn enable_wal(conn: &Connection) -> rusqlite::Result<String> {
    let begun = Instant::now();
    loop {
        let mode = conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0));
        let is_busy =
            mode.as_ref().err().and_then(rusqlite::Error::sqlite_error_code) == Some(ErrorCode::DatabaseBusy);
        if !is_busy || begun.elapsed() > BUSY_TIMEOUT {
            return mode;
        }
        std::thread::sleep(WAL_RETRY_INTERVAL);
    }
}

/// Returns unused pages to the file system, unless another process is in the way.
pub(crate) fn compact(conn: &Connection, file: &str) {
    if let Err(error) = conn.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);") {
        tracing::warn!(file, %error, "the database could not be compacted");
    }
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, SqliteError> {
    let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    // Without it SQLite replans the statement for every new value of a range or a limit.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(conn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_database_is_opened_by_many_at_once() {
        for _ in 0..20 {
            let temp = tempfile::tempdir().unwrap();
            let start = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        start.wait();
                        open_audit(temp.path(), Durability::default()).unwrap();
                    });
                }
            });
        }
    }

    #[test]
    fn a_new_file_gets_the_tables_and_an_old_one_keeps_them() {
        let temp = tempfile::tempdir().unwrap();
        assert!(matches!(read_audit(temp.path()), Err(SqliteError::Missing { .. })));
        drop(open_audit(temp.path(), Durability::Flush).unwrap());
        let conn = open_audit(temp.path(), Durability::Fsync).unwrap();
        assert_eq!(AUDIT_DATABASE.version(&conn, temp.path()).unwrap(), AUDIT_DATABASE.latest_version());
        assert_eq!(conn.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0)).unwrap(), 2);
        assert!(read_audit(temp.path()).is_ok());
    }

    #[test]
    fn companions_of_the_file_are_private_too() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let _conn = open_audit(temp.path(), Durability::Flush).unwrap();
        let modes: Vec<u32> = std::fs::read_dir(temp.path())
            .unwrap()
            .map(|file| file.unwrap().metadata().unwrap().permissions().mode() & 0o777)
            .collect();
        assert_eq!(modes, [0o600; 3]);
    }

    #[test]
    fn a_newer_file_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let conn = open_audit(temp.path(), Durability::Flush).unwrap();
        conn.pragma_update(None, "user_version", AUDIT_DATABASE.latest_version() + 1).unwrap();
        for error in
            [open_audit(temp.path(), Durability::Flush).unwrap_err(), read_audit(temp.path()).unwrap_err()]
        {
            assert!(matches!(error, SqliteError::Newer { found: 4, known: 3, .. }), "{error}");
        }
    }

    #[tokio::test]
    async fn a_log_with_one_chain_is_read_and_gets_the_tables_of_several() {
        let temp = tempfile::tempdir().unwrap();
        let (before, _) = AUDIT_DATABASE.migrations.split_at(2);
        let old = DatabaseSpec { file: AUDIT_DATABASE.file, migrations: before };
        let conn = old.open(temp.path(), Durability::Flush).unwrap();
        let mut head = octo_ports::Anchor::default();
        for seq in 1..=5 {
            let mut record = Vec::new();
            octo_ports::audit_format::record_codec::encode_prune(&mut record, 7, head);
            let hash = octo_ports::audit_format::ChainHasher::default().hash(head.hash, &record);
            head = octo_ports::Anchor { seq, hash };
            let values = (seq.cast_signed(), hash.0.as_slice(), record);
            conn.execute("INSERT INTO audit VALUES (?1, ?2, ?3)", values).unwrap();
        }
        drop(conn);
        // Read before it is migrated, and written afterwards.
        let stores = crate::sqlite(temp.path(), crate::Options::default()).unwrap();
        let verified = stores.audit_reader.verify(&[]).await.unwrap().remove(0);
        assert_eq!((verified.records, verified.head), (5, head));
        stores.audit.open(octo_ports::conformance::call_samples::opening("time_now")).await.unwrap();
        let verified = stores.audit_reader.verify(&[head.into()]).await.unwrap();
        assert_eq!(verified.iter().map(|one| one.records).collect::<Vec<_>>(), [6]);
        let conn = read_audit(temp.path()).unwrap();
        assert_eq!(AUDIT_DATABASE.version(&conn, temp.path()).unwrap(), 3);
    }

    #[test]
    fn the_audit_cannot_be_changed_by_mistake() {
        let temp = tempfile::tempdir().unwrap();
        let conn = open_audit(temp.path(), Durability::Flush).unwrap();
        conn.execute("INSERT INTO audit VALUES (1, x'00', x'00')", ()).unwrap();
        assert!(conn.execute("UPDATE audit SET record = x''", ()).is_err());
        assert!(conn.execute("DELETE FROM audit", ()).is_err());
        conn.execute("INSERT INTO chain_records VALUES ('hub-2', 1, x'00', x'00')", ()).unwrap();
        assert!(conn.execute("UPDATE chain_records SET record = x''", ()).is_err());
        assert!(conn.execute("DELETE FROM chain_records", ()).is_err());
    }

    #[test]
    fn a_file_that_is_open_elsewhere_is_not_opened_alone() {
        let temp = tempfile::tempdir().unwrap();
        assert!(AUDIT_DATABASE.open_alone(temp.path()).unwrap().is_none());
        let conn = open_audit(temp.path(), Durability::Flush).unwrap();
        conn.execute("INSERT INTO audit VALUES (1, x'00', x'00')", ()).unwrap();
        assert!(matches!(AUDIT_DATABASE.open_alone(temp.path()), Err(SqliteError::InUse { .. })));
        drop(conn);
        let alone = AUDIT_DATABASE.open_alone(temp.path()).unwrap().unwrap();
        assert!(alone.prepare("SELECT 1 FROM audit").unwrap().exists(()).unwrap());
        assert!(matches!(AUDIT_DATABASE.open_alone(temp.path()), Err(SqliteError::InUse { .. })));
    }
}
