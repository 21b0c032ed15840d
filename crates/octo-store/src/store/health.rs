//! Health checks: free disk space, a writable directory, a readable database.

use crate::{SqliteError, Store, database, private_files};
use octo_model::BoxFuture;
use octo_ports::{HealthCheck, HealthProblem};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Minimum free bytes: the write-ahead log may grow by more at once.
const MIN_FREE_BYTES: u64 = 8 << 20;
/// Data of the test write.
const PROBE_BYTES: [u8; 4_096] = [0; 4_096];
/// SQLite instructions between two checks of the clock.
const PROGRESS_STEPS: std::ffi::c_int = 100_000;

/// Health of a data directory.
pub(crate) struct SqliteHealth {
    dir: PathBuf,
}

impl SqliteHealth {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    fn run<T: Send + 'static>(
        &self,
        check: impl FnOnce(&Path) -> Result<T, SqliteError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, HealthProblem>> {
        let dir = self.dir.clone();
        Box::pin(async move {
            let checked = tokio::task::spawn_blocking(move || check(&dir)).await;
            let checked = checked.unwrap_or_else(|error| Err(SqliteError::file(&self.dir)(error.into())));
            checked.map_err(|error| HealthProblem { reason: error.to_string(), hint: error.hint() })
        })
    }
}

impl HealthCheck for SqliteHealth {
    fn check_space(&self) -> BoxFuture<'_, Result<Option<u64>, HealthProblem>> {
        self.run(|dir| check_disk(dir).map(Some))
    }

    fn check_integrity(&self, timeout: Duration) -> BoxFuture<'_, Result<bool, HealthProblem>> {
        self.run(move |dir| match check_database(dir, timeout) {
            Err(SqliteError::Missing { .. }) => Ok(false),
            checked => checked.map(|()| true),
        })
    }
}

/// Writes a test file to the directory and removes it; returns the free bytes.
fn check_disk(dir: &Path) -> Result<u64, SqliteError> {
    let about = rustix::fs::statvfs(dir).map_err(|error| SqliteError::file(dir)(error.into()))?;
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    if free < MIN_FREE_BYTES {
        return Err(SqliteError::Full { path: dir.to_owned(), free });
    }
    let path = dir.join(format!(".probe-{}-{:?}", std::process::id(), std::thread::current().id()));
    let _ = std::fs::remove_file(&path);
    let written = private_files::create_new(&path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &PROBE_BYTES));
    let _ = std::fs::remove_file(&path);
    written.map_err(SqliteError::file(dir))?;
    Ok(free)
}

/// Checks the database for damage. If that takes longer than `limit`, what was checked so far counts.
fn check_database(dir: &Path, limit: Duration) -> Result<(), SqliteError> {
    let mut conn = database::read_audit(dir)?;
    let deadline = Instant::now() + limit;
    conn.progress_handler(PROGRESS_STEPS, Some(move || Instant::now() > deadline))?;
    let found: Result<String, rusqlite::Error> =
        conn.query_row("PRAGMA quick_check(1)", (), |row| row.get(0));
    match found {
        Ok(word) if word == "ok" => Ok(()),
        Ok(why) => Err(SqliteError::Damaged { path: database::audit_file(dir), why }),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Store {
    /// Checks that records go to the file that the next start opens, and that there is free space.
    pub fn check(&self) -> Result<u64, SqliteError> {
        let path = database::audit_file(&self.dir);
        if file_identity(&path) != self.identity {
            return Err(SqliteError::Moved { path });
        }
        self.reader()?.head()?;
        check_disk(&self.dir)
    }
}

/// Identity of a file, to detect its replacement.
pub(crate) fn file_identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).map(|about| (about.dev(), about.ino())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[tokio::test]
    async fn a_directory_without_a_database_has_nothing_to_check() {
        let temp = tempfile::tempdir().unwrap();
        let health = SqliteHealth::new(temp.path());
        assert_eq!(health.check_integrity(Duration::from_secs(5)).await, Ok(false));
        assert!(health.check_space().await.unwrap() > Some(0));
        drop(Store::open(temp.path(), Options::default()).unwrap());
        assert_eq!(health.check_integrity(Duration::from_secs(5)).await, Ok(true));
        let gone = SqliteHealth::new(&temp.path().join("gone")).check_space().await.unwrap_err();
        assert!(gone.reason.contains("gone") && gone.hint.contains("directory exists"), "{gone:?}");
    }

    #[tokio::test]
    async fn a_store_that_is_gone_or_damaged_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("state");
        let store = Store::open(&dir, Options::default()).unwrap();
        assert!(store.check().unwrap() > 0);
        assert!(check_database(&dir, Duration::from_secs(5)).is_ok());
        assert_eq!(
            std::fs::read_dir(&dir)
                .unwrap()
                .filter(|it| { it.as_ref().unwrap().file_name().to_string_lossy().starts_with(".probe") })
                .count(),
            0
        );
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(matches!(store.check(), Err(SqliteError::Moved { .. })));
        drop(store);
        let _ = std::fs::remove_dir_all(&dir);
        drop(Store::open(&dir, Options::default()).unwrap());
        std::fs::write(dir.join("octoprox.db"), [7; 8_192]).unwrap();
        assert!(check_database(&dir, Duration::from_secs(5)).is_err());
        assert!(check_disk(Path::new("/proc/nope")).is_err());
        assert!(check_disk(Path::new("/proc")).is_err());
    }
}
