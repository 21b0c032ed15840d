//! Intent log: changes in progress, recorded before they start, so that the next start can clean up after a crash.

use super::temp_names;
use octo_model::ToolError;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) const INTENT_FILE_PREFIX: &str = "intents-";

/// Intents of one process: a file that is locked while the process lives.
pub(super) struct IntentLog {
    path: PathBuf,
    log: Mutex<IntentFile>,
}

struct IntentFile {
    file: File,
    open_changes: usize,
    last_id: u64,
}

impl IntentLog {
    pub fn create(own: &Path) -> std::io::Result<Self> {
        let path = own.join(format!("{INTENT_FILE_PREFIX}{}", temp_names::random_hex()?));
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
        file.lock()?;
        Ok(Self { path, log: Mutex::new(IntentFile { file, open_changes: 0, last_id: 0 }) })
    }

    fn log(&self) -> MutexGuard<'_, IntentFile> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A workspace that is closed normally leaves nothing to recover.
impl Drop for IntentLog {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A change in progress; without a state directory nothing is recorded.
pub(super) struct IntentTxn<'w> {
    intents: Option<&'w IntentLog>,
    id: u64,
}

impl<'w> IntentTxn<'w> {
    pub fn begin(intents: Option<&'w IntentLog>) -> Self {
        let id = intents.map_or(0, |intents| {
            let mut log = intents.log();
            log.open_changes += 1;
            log.last_id += 1;
            log.last_id
        });
        Self { intents, id }
    }

    /// Records an intent. A change that cannot be recorded does not start.
    pub fn write(&self, note: &Intent) -> Result<(), ToolError> {
        let Some(intents) = self.intents else { return Ok(()) };
        temp_names::crash_point();
        let line = note.encode(self.id);
        intents.log().file.write_all(line.as_bytes()).map_err(|error| {
            ToolError::unavailable("The intent log cannot be written; nothing was changed.")
                .hint("Ask the operator to check the disk of the state directory.")
                .detail(error)
        })
    }

    /// Makes the intents durable against power loss.
    pub fn sync(&self) -> Result<(), ToolError> {
        let Some(intents) = self.intents else { return Ok(()) };
        // A second handle, so that other changes need not wait for the disk.
        let file = intents.log().file.try_clone();
        file.and_then(|file| file.sync_data()).map_err(ToolError::internal)
    }
}

impl Drop for IntentTxn<'_> {
    fn drop(&mut self) {
        let Some(intents) = self.intents else { return };
        let mut log = intents.log();
        log.open_changes = log.open_changes.saturating_sub(1);
        if log.open_changes == 0 {
            temp_names::crash_point();
            // A leftover intent is harmless: what it names is gone.
            let _ = log.file.set_len(0);
        }
    }
}

/// A path beneath a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IntentPath {
    pub root: PathBuf,
    pub path: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Intent {
    /// A temporary file or directory that must be removed.
    Temp(IntentPath),
    /// An incomplete undo file.
    Undo(OsString),
    /// A directory that was created for a new file.
    MadeFolder(IntentPath),
    /// A new file gets its name; the id is the new file's.
    Create {
        at: IntentPath,
        id: String,
    },
    /// A file is replaced by `temp`; afterwards the old one is `temp` or `old`.
    Replace {
        at: IntentPath,
        temp: OsString,
        old: OsString,
        id: String,
    },
    /// A file is renamed to `old`, which is removed at the end.
    Remove {
        at: IntentPath,
        old: OsString,
    },
    Move {
        from: IntentPath,
        to: IntentPath,
        id: String,
    },
    /// All steps of the change are committed; only leftovers have to be removed.
    Done,
}

impl Intent {
    pub fn encode(&self, tx: u64) -> String {
        let at = |at: &IntentPath| [at.root.as_os_str().to_owned(), at.path.as_os_str().to_owned()];
        let (word, fields): (&str, Vec<OsString>) = match self {
            Self::Temp(place) => ("temp", at(place).into()),
            Self::Undo(name) => ("undo", vec![name.clone()]),
            Self::MadeFolder(place) => ("made", at(place).into()),
            Self::Create { at: place, id } => ("create", [&at(place)[..], &[id.into()]].concat()),
            Self::Replace { at: place, temp, old, id } => {
                ("replace", [&at(place)[..], &[temp.clone(), old.clone(), id.into()]].concat())
            }
            Self::Remove { at: place, old } => {
                ("remove", [&at(place)[..], std::slice::from_ref(old)].concat())
            }
            Self::Move { from, to, id } => ("move", [&at(from)[..], &at(to)[..], &[id.into()]].concat()),
            Self::Done => ("done", Vec::new()),
        };
        let mut line = format!("{tx} {word}");
        for field in &fields {
            line.push(' ');
            line.push_str(&escape(field));
        }
        line.push('\n');
        line
    }

    /// Parses the transaction number and the intent; `None` for an incomplete line.
    pub fn parse(line: &str) -> Option<(u64, Self)> {
        let mut words = line.split(' ');
        let tx = words.next()?.parse().ok()?;
        let word = words.next()?;
        let mut next = || words.next().map(unescape);
        let mut at = || Some(IntentPath { root: next()?.into(), path: next()?.into() });
        let note = match word {
            "temp" => Self::Temp(at()?),
            "undo" => Self::Undo(next()?),
            "made" => Self::MadeFolder(at()?),
            "create" => Self::Create { at: at()?, id: next()?.into_string().ok()? },
            "replace" => {
                Self::Replace { at: at()?, temp: next()?, old: next()?, id: next()?.into_string().ok()? }
            }
            "remove" => Self::Remove { at: at()?, old: next()? },
            "move" => Self::Move { from: at()?, to: at()?, id: next()?.into_string().ok()? },
            "done" => Self::Done,
            _ => return None,
        };
        Some((tx, note))
    }
}

/// Escapes any name to one line without blanks.
fn escape(text: &OsStr) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'%';
    text.as_bytes().iter().fold(String::new(), |mut line, byte| {
        if plain(*byte) {
            line.push(char::from(*byte));
        } else {
            line.push('%');
            line.push_str(&octo_model::hex(&[*byte]));
        }
        line
    })
}

fn unescape(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit =
            || rest.next().and_then(|digit| char::from(digit).to_digit(16)).unwrap_or_default() as u8;
        bytes.push(if byte == b'%' { digit() << 4 | digit() } else { byte });
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written() {
        let odd = OsString::from_vec(b"a b\n%\xff/c".to_vec());
        let at = IntentPath { root: "/w s".into(), path: odd.clone().into() };
        for note in [
            Intent::Temp(at.clone()),
            Intent::Undo(odd.clone()),
            Intent::MadeFolder(at.clone()),
            Intent::Create { at: at.clone(), id: "1.2.3".into() },
            Intent::Replace { at: at.clone(), temp: odd.clone(), old: "o".into(), id: "1".into() },
            Intent::Remove { at: at.clone(), old: odd.clone() },
            Intent::Move { from: at.clone(), to: at.clone(), id: "9".into() },
            Intent::Done,
        ] {
            let line = note.encode(7);
            assert_eq!(line.lines().count(), 1);
            assert_eq!(Intent::parse(line.trim_end()), Some((7, note)));
        }
        for torn in ["", "7", "7 temp", "7 temp /w", "x temp /w a", "7 replace /w a b"] {
            assert_eq!(Intent::parse(torn), None, "{torn}");
        }
    }
}
