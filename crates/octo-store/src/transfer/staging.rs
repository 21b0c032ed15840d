//! A new state is written beside the files that it will replace, and moved to its place once it is complete. A move
//! that was interrupted is completed by the next process that opens the directory.

use crate::database::DatabaseSpec;
use crate::{Durability, SqliteError, private_files};
use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The directory while it is written.
const PART_DIRECTORY: &str = "store-copy.part";
/// The same directory once it is complete.
const READY_DIRECTORY: &str = "store-copy.ready";
/// Names the directory of the credentials, if it is another one, which is installed together with this one.
const CREDENTIAL_PLACE_FILE: &str = "credential-place";
/// Rows per transaction.
const ROWS_PER_TRANSACTION: u32 = 10_000;

/// Creates an empty directory for new files.
pub(super) fn create_part(dir: &Path) -> Result<PathBuf, SqliteError> {
    private_files::create_private_dir(dir)?;
    let part = dir.join(PART_DIRECTORY);
    remove_part(dir)?;
    private_files::create_private_dir(&part)?;
    Ok(part)
}

pub(super) fn remove_part(dir: &Path) -> Result<(), SqliteError> {
    let part = dir.join(PART_DIRECTORY);
    match std::fs::remove_dir_all(&part) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(SqliteError::file(&part)(error)),
        _ => Ok(()),
    }
}

/// Moves the new files to their place. From the first step on, they will get there, whatever happens to this process.
pub(super) fn install(dir: &Path, credential_dir: &Path) -> Result<(), SqliteError> {
    let (part, ready) = (dir.join(PART_DIRECTORY), dir.join(READY_DIRECTORY));
    if credential_dir != dir {
        sync_dir(&credential_dir.join(PART_DIRECTORY))?;
        let place = std::path::absolute(credential_dir).map_err(SqliteError::file(credential_dir))?;
        write_file(&part.join(CREDENTIAL_PLACE_FILE), place.as_os_str().as_bytes())?;
    }
    sync_dir(&part)?;
    std::fs::rename(&part, &ready).map_err(SqliteError::file(&ready))?;
    sync_dir(dir)?;
    complete_install(dir)
}

/// Completes the move of new files, if there is one.
pub(crate) fn complete_install(dir: &Path) -> Result<(), SqliteError> {
    let ready = dir.join(READY_DIRECTORY);
    let fail = || SqliteError::file(&ready);
    let lock = match File::open(&ready) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        lock => lock.map_err(fail())?,
    };
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| fail()(error.into()))?;
    let place = ready.join(CREDENTIAL_PLACE_FILE);
    match std::fs::read(&place) {
        Ok(path) => {
            let credential_dir = PathBuf::from(OsString::from_vec(path));
            move_files(&credential_dir.join(PART_DIRECTORY), &credential_dir)?;
            move_files(&ready, dir)?;
            remove_file(&dir.join(CREDENTIAL_PLACE_FILE))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => move_files(&ready, dir),
        Err(error) => Err(SqliteError::file(&place)(error)),
    }
}

/// Moves all files, and removes the directory that they were in.
fn move_files(from: &Path, to: &Path) -> Result<(), SqliteError> {
    let entries = match std::fs::read_dir(from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(SqliteError::file(from))?,
    };
    let mut names: Vec<OsString> = Vec::new();
    for entry in entries {
        names.push(entry.map_err(SqliteError::file(from))?.file_name());
    }
    // Last, so that it is there as long as there is something to move.
    names.sort_by_key(|name| name.as_os_str() == CREDENTIAL_PLACE_FILE);
    for name in names {
        let (old, new) = (from.join(&name), to.join(&name));
        if old.is_dir() {
            private_files::create_private_dir(&new)?;
            move_files(&old, &new)?;
            continue;
        }
        if new.extension() == Some(OsStr::new("db")) {
            // Those of the file that is replaced, which has no records.
            for companion in ["db-wal", "db-shm"] {
                remove_file(&new.with_extension(companion))?;
            }
        }
        std::fs::rename(&old, &new).map_err(SqliteError::file(&new))?;
    }
    sync_dir(to)?;
    match std::fs::remove_dir(from) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(SqliteError::file(from)(error)),
        _ => Ok(()),
    }
}

fn remove_file(path: &Path) -> Result<(), SqliteError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(SqliteError::file(path)(error)),
        _ => Ok(()),
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), SqliteError> {
    let written = private_files::create_new(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(SqliteError::file(path))
}

fn sync_dir(dir: &Path) -> Result<(), SqliteError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(SqliteError::file(dir))
}

/// A new database, created with its first row.
pub(super) struct NewDatabase {
    dir: PathBuf,
    spec: &'static DatabaseSpec,
    conn: Option<Connection>,
    rows: u32,
}

impl NewDatabase {
    pub(super) fn new(dir: &Path, spec: &'static DatabaseSpec) -> Self {
        Self { dir: dir.to_owned(), spec, conn: None, rows: 0 }
    }

    /// For one more row.
    pub(super) fn conn(&mut self) -> Result<&Connection, SqliteError> {
        let conn = match self.conn.take() {
            Some(conn) if self.rows < ROWS_PER_TRANSACTION => conn,
            Some(conn) => {
                conn.execute_batch("COMMIT; BEGIN")?;
                self.rows = 0;
                conn
            }
            None => {
                let conn = self.spec.open(&self.dir, Durability::Flush)?;
                // The file counts only when it is complete.
                conn.pragma_update(None, "synchronous", "OFF")?;
                conn.execute_batch("BEGIN")?;
                conn
            }
        };
        self.rows += 1;
        Ok(self.conn.insert(conn))
    }

    /// Whether it has rows.
    pub(super) const fn is_used(&self) -> bool {
        self.conn.is_some()
    }

    /// Writes everything to disk.
    pub(super) fn finish(&mut self) -> Result<(), SqliteError> {
        let Some(conn) = self.conn.take() else { return Ok(()) };
        conn.execute_batch("COMMIT")?;
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))?;
        conn.close().map_err(|(_, error)| error)?;
        let path = self.dir.join(self.spec.file);
        File::open(&path).and_then(|file| file.sync_all()).map_err(SqliteError::file(&path))
    }
}
