//! Undo log: previous states of files, stored for a limited time.

use super::hash;
use super::intent_log::{Intent, IntentPath, IntentTxn};
use super::temp_names;
use octo_model::ToolError;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Larger files cannot be restored.
pub(super) const MAX_UNDO_FILE_BYTES: u64 = 16 << 20;
const MAX_UNDO_BYTES: u64 = 256 << 20;
const MAX_UNDO_ENTRIES: u64 = 1_000;

/// Name prefix of an incomplete entry.
const INCOMPLETE_PREFIX: &str = "new-";

/// Trailer of an entry: hash after the change, or dashes if it removed the file; mode before the change, or dashes if
/// there was no file; length of the link before the trailer, in hexadecimal.
const TRAILER_LEN: usize = 64 + 1 + 6 + 1 + 8 + 1;

/// Entries of earlier versions end without the length.
const LEGACY_TRAILER_LEN: usize = 64 + 1 + 6 + 1;

/// Upper bound of a link, so that reading an entry is bounded.
const MAX_LINK_BYTES: u64 = 1 << 20;

pub(super) struct UndoLog {
    folder: PathBuf,
    usage: Mutex<UndoUsage>,
}

#[derive(Default)]
struct UndoUsage {
    entries: u64,
    bytes: u64,
}

/// Previous state for a change that is not complete yet.
pub(super) struct UndoEntry {
    pub file: File,
    name: OsString,
    key: String,
}

/// The last change of a file.
pub(super) struct LastChange {
    /// Hash after the change; `None` if it removed the file.
    pub after: Option<String>,
    /// Mode and content before the change; `None` if there was no file.
    pub before: Option<(u32, Vec<u8>)>,
    pub link: UndoLink,
}

/// What else one undo restores together with a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum UndoLink {
    #[default]
    None,
    /// Changes of other files that belong to the same rename; all of them have the id.
    Group { id: String, others: Vec<IntentPath> },
    /// A file, directory or symbolic link with this id was renamed. The entry of `to` holds the content that it
    /// replaced.
    Move { id: String, from: IntentPath, to: IntentPath },
}

impl UndoLink {
    fn encode(&self) -> Vec<u8> {
        let (word, id, at): (&str, &str, Vec<&IntentPath>) = match self {
            Self::None => return Vec::new(),
            Self::Group { id, others } => ("group", id, others.iter().collect()),
            Self::Move { id, from, to } => ("move", id, vec![from, to]),
        };
        let paths = at.into_iter().flat_map(|at| [at.root.as_os_str(), at.path.as_os_str()]);
        let fields = [OsStr::new(word), OsStr::new(id)].into_iter().chain(paths);
        fields.flat_map(|field| field.as_bytes().iter().copied().chain([0])).collect()
    }

    /// Returns `None` if it is not a link.
    fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::None);
        }
        let mut fields = bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0);
        let mut text = || fields.next().and_then(|field| std::str::from_utf8(field).ok());
        let (word, id) = (text()?, text()?.to_owned());
        let path = |field: &[u8]| PathBuf::from(OsString::from_vec(field.to_vec()));
        let fields: Vec<&[u8]> = fields.collect();
        let (pairs, rest) = fields.as_chunks::<2>();
        let mut at = pairs.iter().map(|[root, inside]| IntentPath { root: path(root), path: path(inside) });
        match word {
            _ if !rest.is_empty() => None,
            "group" => Some(Self::Group { id, others: at.collect() }),
            "move" => Some(Self::Move { id, from: at.next()?, to: at.next()? }),
            _ => None,
        }
    }
}

impl UndoLog {
    pub fn open(folder: PathBuf) -> std::io::Result<Self> {
        let undos = Self { folder, usage: Mutex::default() };
        undos.enforce_limits()?;
        Ok(undos)
    }

    fn usage(&self) -> MutexGuard<'_, UndoUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates an empty entry for a file of a root, to be filled with its content.
    pub fn begin(&self, whose: &UndoKey<'_>, tx: &IntentTxn<'_>) -> Result<UndoEntry, ToolError> {
        let name: OsString =
            format!("{INCOMPLETE_PREFIX}{}", temp_names::random_hex().map_err(ToolError::internal)?).into();
        tx.write(&Intent::Undo(name.clone()))?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.folder.join(&name));
        Ok(UndoEntry { file: file.map_err(ToolError::internal)?, name, key: whose.key() })
    }

    /// Makes an entry the last change of its file.
    pub fn publish(
        &self,
        mut kept: UndoEntry,
        mode: Option<u32>,
        after: Option<&str>,
        link: &UndoLink,
    ) -> std::io::Result<()> {
        let mode = mode.map_or("------".to_owned(), |mode| format!("{mode:06o}"));
        let link = link.encode();
        if link.len() as u64 > MAX_LINK_BYTES {
            self.discard(&kept);
            return Err(std::io::Error::other("too many files renamed in one change"));
        }
        kept.file.write_all(&link)?;
        writeln!(kept.file, "{:-<64} {mode} {:08x}", after.unwrap_or_default(), link.len())?;
        let bytes = kept.file.metadata()?.len();
        std::fs::rename(self.folder.join(&kept.name), self.folder.join(&kept.key))?;
        let full = {
            let mut tally = self.usage();
            tally.entries += 1;
            tally.bytes += bytes;
            tally.entries > MAX_UNDO_ENTRIES || tally.bytes > MAX_UNDO_BYTES
        };
        if full { self.enforce_limits() } else { Ok(()) }
    }

    /// Removes an incomplete entry.
    pub fn remove_incomplete(&self, name: &OsStr) {
        if name.as_bytes().starts_with(INCOMPLETE_PREFIX.as_bytes()) && !name.as_bytes().contains(&b'/') {
            let _ = std::fs::remove_file(self.folder.join(name));
        }
    }

    pub fn discard(&self, kept: &UndoEntry) {
        self.remove_incomplete(&kept.name);
    }

    /// Removes the entry of a file.
    pub fn remove(&self, whose: &UndoKey<'_>) {
        let _ = std::fs::remove_file(self.folder.join(whose.key()));
    }

    /// The last change of a file by one caller, if it is stored.
    pub fn last_change(&self, whose: &UndoKey<'_>) -> std::io::Result<Option<LastChange>> {
        let file = match File::open(self.folder.join(whose.key())) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(MAX_UNDO_FILE_BYTES + MAX_LINK_BYTES + TRAILER_LEN as u64).read_to_end(&mut bytes)?;
        Ok(decode(bytes))
    }

    /// Removes the oldest entries above the limits.
    fn enforce_limits(&self) -> std::io::Result<()> {
        let mut tally = self.usage();
        let mut all = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if let Ok(about) = entry.metadata() {
                all.push(((about.mtime(), about.mtime_nsec()), about.len(), entry.path()));
            }
        }
        all.sort_unstable();
        *tally = UndoUsage { entries: all.len() as u64, bytes: all.iter().map(|entry| entry.1).sum() };
        if tally.entries <= MAX_UNDO_ENTRIES && tally.bytes <= MAX_UNDO_BYTES {
            return Ok(());
        }
        // Removes a tenth more than needed, so that the next change does not have to do it again.
        for (_, bytes, path) in all {
            if tally.entries <= MAX_UNDO_ENTRIES / 10 * 9 && tally.bytes <= MAX_UNDO_BYTES / 10 * 9 {
                break;
            }
            let _ = std::fs::remove_file(path);
            tally.entries -= 1;
            tally.bytes -= bytes;
        }
        Ok(())
    }
}

fn decode(mut bytes: Vec<u8>) -> Option<LastChange> {
    let end = |length: usize| {
        let line = std::str::from_utf8(bytes.get(bytes.len().checked_sub(length)?..)?).ok()?;
        let fields: Vec<&str> = line.trim_end().split(' ').collect();
        let known =
            matches!((length, fields.as_slice()), (TRAILER_LEN, [_, _, _]) | (LEGACY_TRAILER_LEN, [_, _]));
        (known && fields.first()?.len() == 64).then(|| fields.iter().map(|&field| field.to_owned()).collect())
    };
    let (length, fields): (usize, Vec<String>) = end(TRAILER_LEN)
        .map(|fields| (TRAILER_LEN, fields))
        .or_else(|| end(LEGACY_TRAILER_LEN).map(|fields| (LEGACY_TRAILER_LEN, fields)))?;
    bytes.truncate(bytes.len() - length);
    let mut fields = fields.into_iter();
    let (after, mode) = (fields.next()?, fields.next()?);
    let link = match fields.next() {
        Some(length) => usize::from_str_radix(&length, 16).ok()?,
        None => 0,
    };
    let link = bytes.split_off(bytes.len().checked_sub(link)?);
    let before = u32::from_str_radix(&mode, 8).ok().map(|mode| (mode, bytes));
    Some(LastChange {
        after: (!after.starts_with('-')).then_some(after),
        before,
        link: UndoLink::decode(&link)?,
    })
}

/// File and caller of an entry.
pub(super) struct UndoKey<'a> {
    pub root: &'a Path,
    pub real: &'a Path,
    pub changed_by: Option<&'a str>,
}

impl UndoKey<'_> {
    fn key(&self) -> String {
        let mut hashing = hash::HashingWriter::new(std::io::sink());
        let file = [self.root.as_os_str().as_bytes(), b"\0", self.real.as_os_str().as_bytes()];
        let by = self.changed_by.map(|by| [b"\0", by.as_bytes()]);
        for part in file.into_iter().chain(by.into_iter().flatten()) {
            let _ = hashing.write_all(part);
        }
        hashing.finish()
    }
}
