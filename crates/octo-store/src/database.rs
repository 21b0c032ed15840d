//! Opening and migrating the database files.

use crate::{Durability, SqliteError, private_files};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Timeout for another process that writes.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

const WAL_RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// A database file with its migrations.
pub(crate) struct DatabaseSpec {
    pub(crate) file: &'static str,
    /// Step `n` migrates from version `n` to `n + 1`.
    pub(crate) migrations: &'static [&'static str],
}

/// The audit log and the index of stored results.
const AUDIT_DATABASE: DatabaseSpec = DatabaseSpec {
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
        self.migrate(&mut conn, &path)?;
        Ok(conn)
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
            assert!(matches!(error, SqliteError::Newer { found: 3, known: 2, .. }), "{error}");
        }
    }

    #[test]
    fn the_audit_cannot_be_changed_by_mistake() {
        let temp = tempfile::tempdir().unwrap();
        let conn = open_audit(temp.path(), Durability::Flush).unwrap();
        conn.execute("INSERT INTO audit VALUES (1, x'00', x'00')", ()).unwrap();
        assert!(conn.execute("UPDATE audit SET record = x''", ()).is_err());
        assert!(conn.execute("DELETE FROM audit", ()).is_err());
    }
}
