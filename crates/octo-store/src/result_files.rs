//! Stored results: each is a file, with a second one for its text to be read in parts, and an index of their
//! owners.
//!
//! The row is written before the file and deleted after it, so that a crash never leaves an unknown file. A
//! row without its file counts as missing.

use crate::audit::audit_writer::WriteLock;
use crate::{Options, SqliteError, private_files};
use octo_model::{CallId, Json, Principal};
use octo_ports::random_id::{RESULT_PREFIX, is_id, new_id};
use octo_ports::result_quota::{ResultsByOwner, choose_evicted};
use octo_ports::{Limit, Port, StoreError, StoreResult, StoredText, TextSize, write_text};
use rusqlite::Connection;
use std::io::{BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// On disk, results have the names of the first version: directory and table `spills`.
pub(crate) const RESULTS_DIRECTORY: &str = "spills";

/// All methods block; `Store` calls them on blocking threads.
pub(crate) struct ResultFiles {
    dir: PathBuf,
    index: Mutex<Connection>,
    write_lock: WriteLock,
    options: Options,
}

/// Microseconds since 1970.
pub(crate) fn now_micros() -> i64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_micros() as i64)
}

impl ResultFiles {
    pub(crate) fn open(
        dir: &Path,
        index: Connection,
        turn: WriteLock,
        options: Options,
    ) -> Result<Self, SqliteError> {
        let dir = dir.join(RESULTS_DIRECTORY);
        private_files::create_private_dir(&dir)?;
        let files = Self { dir, index: Mutex::new(index), write_lock: turn, options };
        files.evict()?;
        Ok(files)
    }

    pub(crate) fn store(&self, owner: &Principal, call: CallId, whole: &Json) -> StoreResult<String> {
        let size = whole.bytes().len() as u64;
        if size > self.options.result_quota_bytes {
            return Err(StoreError::Full(Limit::ResultBytes));
        }
        let handle = new_id(RESULT_PREFIX)?;
        self.insert_row(owner, call, &handle, size).map_err(store_error)?;
        let written = self.write(&handle, whole).and_then(|()| self.write_text(&handle, whole));
        let noted = written
            .map_err(store_error)
            .and_then(|text| self.update_size(&handle, size + text).map_err(store_error));
        if let Err(error) = noted {
            self.remove(std::slice::from_ref(&handle))
                .unwrap_or_else(|error| tracing::warn!(%error, "a stored result was left behind"));
            return Err(error);
        }
        match self.evict() {
            Ok(gone) if gone.contains(&handle) => Err(StoreError::Full(Limit::ResultShare)),
            Ok(_) => Ok(handle),
            Err(error) => {
                tracing::warn!(%error, "old stored results could not be removed");
                Ok(handle)
            }
        }
    }

    /// Opens the text of a result, which is read from disk.
    pub(crate) fn open_text(&self, owner: &Principal, handle: &str) -> StoreResult<StoredText> {
        if !is_id(RESULT_PREFIX, handle) || !self.is_known(owner, handle).map_err(StoreError::internal)? {
            return Err(unknown_handle());
        }
        let file = match std::fs::File::open(self.text_path(handle)) {
            Ok(file) => file,
            // Stored by a version that wrote no text.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return StoredText::render(&self.load(owner, handle)?);
            }
            Err(error) => return Err(StoreError::internal(error)),
        };
        let damaged =
            |_| StoreError::corrupt(Port::Results, format!("the text of the stored result {handle}"));
        TextFile::open(file).map_err(damaged)
    }

    pub(crate) fn load(&self, owner: &Principal, handle: &str) -> StoreResult<Json> {
        // All three have the same answer, so that callers cannot find out which handles exist.
        if !is_id(RESULT_PREFIX, handle) || !self.is_known(owner, handle).map_err(StoreError::internal)? {
            return Err(unknown_handle());
        }
        let text = std::fs::read(self.dir.join(handle)).map_err(|error| match error.kind() {
            ErrorKind::NotFound => unknown_handle(),
            _ => StoreError::internal(error),
        })?;
        Json::parse(text).map_err(|fault| {
            StoreError::corrupt(Port::Results, format!("the stored result {handle}: {fault}"))
        })
    }

    fn index(&self) -> MutexGuard<'_, Connection> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert_row(&self, owner: &Principal, call: CallId, handle: &str, size: u64) -> rusqlite::Result<()> {
        let index = self.index();
        let _turn = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        index
            .prepare_cached(
                "INSERT INTO spills (handle, subject, tenant, call, size, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute((handle, &owner.subject, &owner.tenant, call.to_string(), size.cast_signed(), now_micros()))
            .map(drop)
    }

    fn is_known(&self, owner: &Principal, handle: &str) -> rusqlite::Result<bool> {
        self.index()
            .prepare_cached(
                "SELECT 1 FROM spills WHERE handle = ?1 AND subject = ?2 AND tenant = ?3 AND created > ?4",
            )?
            .exists((handle, &owner.subject, &owner.tenant, self.expiry_cutoff()))
    }

    /// Results created at this time or earlier have expired.
    fn expiry_cutoff(&self) -> i64 {
        let ttl = i64::try_from(self.options.result_ttl.as_micros()).unwrap_or(i64::MAX);
        now_micros().saturating_sub(ttl)
    }

    /// The file appears under its name only when complete.
    fn write(&self, handle: &str, whole: &Json) -> std::io::Result<()> {
        let part = self.part_path(handle);
        let mut file = private_files::create_new(&part)?;
        file.write_all(whole.bytes())?;
        let power = self.options.durability == crate::Durability::Fsync;
        if power {
            file.sync_all()?;
        }
        std::fs::rename(&part, self.dir.join(handle))?;
        if power { std::fs::File::open(&self.dir)?.sync_all() } else { Ok(()) }
    }

    /// Writes the text beside the result and returns the size of the file.
    fn write_text(&self, handle: &str, whole: &Json) -> std::io::Result<u64> {
        let part = self.part_path(handle);
        let size = write_text_file(&part, whole)?;
        std::fs::rename(&part, self.text_path(handle))?;
        Ok(size)
    }

    fn text_path(&self, handle: &str) -> PathBuf {
        text_path(&self.dir, handle)
    }

    fn update_size(&self, handle: &str, size: u64) -> rusqlite::Result<()> {
        let index = self.index();
        let _turn = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        index
            .prepare_cached("UPDATE spills SET size = ?2 WHERE handle = ?1")?
            .execute((handle, size.cast_signed()))
            .map(drop)
    }

    fn part_path(&self, handle: &str) -> PathBuf {
        self.dir.join(format!("{handle}.part"))
    }

    /// Removes expired and surplus results; returns their handles.
    fn evict(&self) -> rusqlite::Result<Vec<String>> {
        let gone = self.find_surplus()?;
        if !gone.is_empty() {
            self.remove(&gone)?;
        }
        Ok(gone)
    }

    fn find_surplus(&self) -> rusqlite::Result<Vec<String>> {
        let index = self.index();
        let mut statement =
            index.prepare_cached("SELECT handle, tenant, subject, size, created FROM spills ORDER BY id")?;
        let rows = statement.query_map((), |row| {
            let owner = Principal { tenant: row.get(1)?, subject: row.get(2)? };
            Ok((row.get(0)?, owner, row.get::<_, i64>(3)?.max(0).cast_unsigned(), row.get(4)?))
        })?;
        let (mut gone, mut owners) = (Vec::new(), ResultsByOwner::new());
        for row in rows {
            let (handle, owner, size, created): (String, Principal, u64, i64) = row?;
            if created <= self.expiry_cutoff() {
                gone.push(handle);
            } else {
                owners.entry(owner).or_default().push_back((handle, size));
            }
        }
        gone.extend(choose_evicted(owners, self.options.result_quota_bytes));
        Ok(gone)
    }

    fn remove(&self, handles: &[String]) -> rusqlite::Result<()> {
        for handle in handles {
            for file in [self.dir.join(handle), self.text_path(handle), self.part_path(handle)] {
                match std::fs::remove_file(&file) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        tracing::warn!(%error, file = %file.display(), "a stored result could not be removed");
                    }
                    _ => {}
                }
            }
        }
        let mut index = self.index();
        let _turn = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let change = index.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        for handle in handles {
            change.prepare_cached("DELETE FROM spills WHERE handle = ?1")?.execute([handle])?;
        }
        change.commit()
    }
}

/// The file with the text of a result.
pub(crate) fn text_path(dir: &Path, handle: &str) -> PathBuf {
    dir.join(format!("{handle}.txt"))
}

/// Writes the text of a result to a new file and returns its size.
pub(crate) fn write_text_file(path: &Path, whole: &Json) -> std::io::Result<u64> {
    let mut file = BufWriter::with_capacity(1 << 16, private_files::create_new(path)?);
    file.write_all(&[b' '; HEADER_LEN])?;
    let size = write_text(whole, &mut file)?;
    let mut file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(format_header(size).as_bytes())?;
    Ok(size.bytes + HEADER_LEN as u64)
}

/// Header before the text: its number of lines and bytes.
const HEADER_LEN: usize = 40;

fn format_header(size: TextSize) -> String {
    format!("{:>19} {:>19}\n", size.lines, size.bytes)
}

/// A file after its header.
struct TextFile(std::fs::File);

impl TextFile {
    fn open(mut file: std::fs::File) -> std::io::Result<StoredText> {
        let mut head = [0; HEADER_LEN];
        file.read_exact(&mut head)?;
        let damaged = || std::io::Error::from(ErrorKind::InvalidData);
        let text = std::str::from_utf8(&head).map_err(|_| damaged())?;
        let (lines, bytes) = text.trim().split_once(' ').ok_or_else(damaged)?;
        let number = |text: &str| text.trim().parse().map_err(|_| damaged());
        let size = TextSize { lines: number(lines)?, bytes: number(bytes)? };
        Ok(StoredText { reader: Box::new(Self(file)), size })
    }
}

impl Read for TextFile {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(into)
    }
}

impl Seek for TextFile {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => SeekFrom::Start(at.saturating_add(HEADER_LEN as u64)),
            other => other,
        };
        self.0.seek(to).map(|at| at.saturating_sub(HEADER_LEN as u64))
    }
}

fn unknown_handle() -> StoreError {
    StoreError::NotFound(Port::Results)
}

fn store_error(error: impl std::fmt::Display) -> StoreError {
    StoreError::unavailable(Port::Results, error)
}
