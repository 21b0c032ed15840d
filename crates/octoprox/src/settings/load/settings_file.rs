//! A settings file, read once: the same bytes are hashed, checked and parsed.

use crate::settings::approval::trust_store::{NOFOLLOW_NONBLOCK, TrustRecord, is_writable_only_by_us};
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem};
use crate::settings::load::settings_format;
use octo_model::sha256_hex;
use serde_json::{Map, Value};
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Far above the size of any handwritten settings file.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;
/// Far above the size of a lock file with a few hundred packages.
const MAX_LOCK_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone)]
pub struct SettingsFile {
    /// Path as given, made absolute.
    pub path: PathBuf,
    /// Canonical path.
    pub canonical: PathBuf,
    pub sha256: String,
    /// Whether users other than this one and root can write to it.
    pub is_writable_by_others: bool,
    text: String,
}

impl SettingsFile {
    pub fn open(path: &Path) -> Result<Self, SettingsProblem> {
        Self::open_limited(path, MAX_SETTINGS_BYTES)
    }

    /// Opens a lock file, which may be larger than a file that a person writes.
    pub fn open_lock(path: &Path) -> Result<Self, SettingsProblem> {
        Self::open_limited(path, MAX_LOCK_BYTES)
    }

    fn open_limited(path: &Path, max_bytes: u64) -> Result<Self, SettingsProblem> {
        Self::read(path, max_bytes).map_err(|error| {
            let wrong = |what: String, remedy: &str| {
                SettingsProblem::new(SettingOrigin::File(path.to_owned()), "", what, remedy)
            };
            match error.kind() {
                io::ErrorKind::NotFound => {
                    wrong("file not found.".to_owned(), "Check the path or remove it.")
                }
                _ => wrong(format!("cannot read the file: {error}."), "Check its permissions and encoding."),
            }
        })
    }

    /// Opens the file at the canonical path; fails if it has been replaced by a symlink since.
    fn read(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let real = path.canonicalize()?;
        if real == Path::new("/dev/null") {
            let (path, text) = (path.to_owned(), String::new());
            return Ok(Self {
                path,
                canonical: real,
                sha256: sha256_hex(b""),
                is_writable_by_others: false,
                text,
            });
        }
        let file = OpenOptions::new().read(true).custom_flags(NOFOLLOW_NONBLOCK).open(&real)?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(max_bytes + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes {
            return Err(io::Error::other(format!("larger than {} MiB", max_bytes >> 20)));
        }
        let sha256 = sha256_hex(&bytes);
        let text = String::from_utf8(bytes).map_err(|_| io::Error::other("not valid UTF-8"))?;
        Ok(Self {
            path: path.to_owned(),
            canonical: real,
            sha256,
            is_writable_by_others: !is_writable_only_by_us(&about),
            text,
        })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Parses the file as an object; an empty file is an empty object.
    pub fn tree(&self) -> Result<Map<String, Value>, SettingsProblem> {
        settings_format::parse_object(&self.path, &self.text)
    }

    /// Returns the record that `octoprox trust` stores.
    pub fn record(&self) -> TrustRecord {
        TrustRecord { path: self.canonical.clone(), named: self.path.clone(), sha256: self.sha256.clone() }
    }
}
