//! Stored results: their files, and the index of their owners.

use super::copy_error::CopyResult;
use crate::result_files::{RESULTS_DIRECTORY, text_path, write_text_file};
use crate::{SqliteError, private_files};
use octo_model::{Json, Principal};
use octo_ports::random_id::{RESULT_PREFIX, is_id};
use octo_ports::transfer::{RESULT_CHUNK_BYTES, RecordSender, ResultRow, TransferRecord};
use octo_ports::{Port, StoreError};
use rusqlite::Connection;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// A row without its file is left out, as a reader does.
pub(super) fn export(conn: &Connection, dir: &Path, to: &RecordSender) -> CopyResult<()> {
    let mut statement =
        conn.prepare("SELECT handle, tenant, subject, call, created FROM spills ORDER BY id")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let handle: String = row.get(0)?;
        if !is_id(RESULT_PREFIX, &handle) {
            continue;
        }
        let path = dir.join(RESULTS_DIRECTORY).join(&handle);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            file => file.map_err(SqliteError::file(&path))?,
        };
        let size = file.metadata().map_err(SqliteError::file(&path))?.len();
        let owner = Principal { tenant: row.get(1)?, subject: row.get(2)? };
        let result = ResultRow { handle, owner, call: row.get(3)?, size, created: row.get(4)? };
        to.blocking_send(TransferRecord::Result(result))?;
        send_chunks(file.take(size), size, to).map_err(SqliteError::file(&path))??;
    }
    Ok(())
}

fn send_chunks(mut file: impl Read, size: u64, to: &RecordSender) -> std::io::Result<CopyResult<()>> {
    let mut left = size;
    while left > 0 {
        let mut chunk = vec![0; left.min(RESULT_CHUNK_BYTES as u64) as usize];
        file.read_exact(&mut chunk)?;
        left -= chunk.len() as u64;
        if let Err(error) = to.blocking_send(TransferRecord::ResultChunk(chunk)) {
            return Ok(Err(error.into()));
        }
    }
    Ok(Ok(()))
}

/// Results as they arrive in a new directory.
pub(super) struct ResultImport {
    dir: PathBuf,
    current: Option<(ResultRow, File, u64)>,
}

impl ResultImport {
    pub(super) fn new(dir: &Path) -> Self {
        Self { dir: dir.join(RESULTS_DIRECTORY), current: None }
    }

    pub(super) fn start(&mut self, conn: &Connection, row: ResultRow) -> CopyResult<()> {
        if !is_id(RESULT_PREFIX, &row.handle) {
            return Err(StoreError::corrupt(Port::Results, format!("the handle {}", row.handle)).into());
        }
        private_files::create_private_dir(&self.dir)?;
        let path = self.dir.join(&row.handle);
        let file = private_files::create_new(&path).map_err(SqliteError::file(&path))?;
        self.current = Some((row, file, 0));
        self.finish_if_complete(conn)
    }

    pub(super) fn add(&mut self, conn: &Connection, chunk: &[u8]) -> CopyResult<()> {
        let Some((row, file, written)) = &mut self.current else {
            return Err(StoreError::internal("bytes of no result").into());
        };
        file.write_all(chunk).map_err(SqliteError::file(&self.dir.join(&row.handle)))?;
        *written += chunk.len() as u64;
        self.finish_if_complete(conn)
    }

    /// Writes the text beside the result, and its row.
    fn finish_if_complete(&mut self, conn: &Connection) -> CopyResult<()> {
        let Some((row, file, _)) = self.current.take_if(|(row, _, written)| *written >= row.size) else {
            return Ok(());
        };
        let path = self.dir.join(&row.handle);
        file.sync_all().map_err(SqliteError::file(&path))?;
        let bytes = std::fs::read(&path).map_err(SqliteError::file(&path))?;
        let text_size = match Json::parse(bytes) {
            Ok(whole) => {
                let text = text_path(&self.dir, &row.handle);
                write_text_file(&text, &whole).map_err(SqliteError::file(&text))?
            }
            // As damaged as it was.
            Err(_) => 0,
        };
        let size = (row.size + text_size).cast_signed();
        let mut insert = conn.prepare_cached(
            "INSERT INTO spills (handle, subject, tenant, call, size, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        let owner = &row.owner;
        insert.execute((&row.handle, &owner.subject, &owner.tenant, &row.call, size, row.created))?;
        Ok(())
    }
}
