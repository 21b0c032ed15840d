//! Approved settings files, and all directories that tools were ever allowed to write to.

use crate::settings::Environment;
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem};
use crate::settings::load::settings_file::SettingsFile;
use crate::settings::load::settings_locations;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const STORE_FILE: &str = "trusted.json";
const LOCK_FILE: &str = "trusted.lock";
const MAX_STORE_BYTES: u64 = 8 << 20;
/// Above this number, roots that no longer exist are removed.
const MAX_ROOTS: usize = 1_000;

/// An approved file: its path and content hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRecord {
    /// Canonical path.
    pub path: PathBuf,
    /// Path under which it was approved.
    pub named: PathBuf,
    pub sha256: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Records {
    files: Vec<TrustRecord>,
    /// Directories that the tools of any hub may write to, now or in the past.
    #[serde(default)]
    writable_roots: BTreeSet<PathBuf>,
}

/// Approval state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// Approved with exactly this content.
    Approved,
    /// Approved with different content, or under a path that now resolves elsewhere.
    Changed,
    Unknown,
}

/// Records of approved files, in the state directory. Their location cannot be set in a settings file.
#[derive(Debug, Clone, Default)]
pub struct TrustStore {
    folder: Option<PathBuf>,
    records: Records,
}

impl TrustStore {
    pub fn open(world: &Environment) -> Result<Self, SettingsProblem> {
        let named = world.variable("OCTOPROX_STATE_DIR").map(|named| world.current_dir.join(named));
        let Some(folder) = named.or_else(|| settings_locations::state_dir(world)) else {
            return Ok(Self::default());
        };
        let path = folder.join(STORE_FILE);
        let wrong = |what: String, remedy: String| {
            SettingsProblem::new(SettingOrigin::File(path.clone()), "", what, remedy)
        };
        let records = match read_records(&path) {
            Ok(records) => records,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Records::default(),
            Err(error) => {
                return Err(wrong(
                    format!("cannot use the list of approved files: {error}."),
                    "Delete it, then run `octoprox trust` for each file you use.".to_owned(),
                ));
            }
        };
        Ok(Self { folder: Some(folder), records })
    }

    /// Path of the records.
    pub fn path(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(STORE_FILE))
    }

    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub fn records(&self) -> &[TrustRecord] {
        &self.records.files
    }

    pub fn writable_roots(&self) -> impl Iterator<Item = &Path> {
        self.records.writable_roots.iter().map(PathBuf::as_path)
    }

    pub fn approval(&self, file: &SettingsFile) -> Approval {
        let records = &self.records.files;
        if records.iter().any(|record| record.path == file.canonical && record.sha256 == file.sha256) {
            return Approval::Approved;
        }
        let known = |record: &TrustRecord| {
            [&record.path, &record.named]
                .into_iter()
                .any(|path| *path == file.canonical || *path == file.path)
        };
        if records.iter().any(known) { Approval::Changed } else { Approval::Unknown }
    }

    /// Reads the records again and returns whether this content is approved at this canonical path.
    pub fn is_approved(&self, real: &Path, content: &[u8]) -> bool {
        let Some(Ok(records)) = self.path().map(|path| read_records(&path)) else { return false };
        let sha256 = octo_model::sha256_hex(content);
        records.files.iter().any(|record| record.path == real && record.sha256 == sha256)
    }

    /// Records files, replacing earlier records of their paths.
    pub fn approve(&mut self, files: &[TrustRecord]) -> io::Result<()> {
        self.update(|records| {
            records
                .files
                .retain(|old| files.iter().all(|new| new.path != old.path && new.named != old.named));
            records.files.extend_from_slice(files);
        })
    }

    /// Removes files. Returns how many were recorded.
    pub fn revoke(&mut self, paths: &BTreeSet<PathBuf>) -> io::Result<usize> {
        let before = self.records.files.len();
        self.update(|records| {
            records.files.retain(|record| !paths.contains(&record.path) && !paths.contains(&record.named));
        })?;
        Ok(before.saturating_sub(self.records.files.len()))
    }

    /// Records that tools may write to these directories: settings files in them require approval from now on,
    /// regardless of their content.
    pub fn remember_roots(&mut self, roots: &[PathBuf]) -> io::Result<()> {
        if roots.iter().all(|root| self.records.writable_roots.contains(root)) {
            return Ok(());
        }
        self.update(|records| {
            if records.writable_roots.len() > MAX_ROOTS {
                records.writable_roots.retain(|root| root.is_dir());
            }
            records.writable_roots.extend(roots.iter().cloned());
        })
    }

    /// Updates the file under a lock, so that concurrent commands lose no changes.
    fn update(&mut self, work: impl FnOnce(&mut Records)) -> io::Result<()> {
        let Some(folder) = &self.folder else {
            return Err(io::Error::other("no home directory found; set OCTOPROX_STATE_DIR"));
        };
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let private = |options: &mut OpenOptions| {
            options.write(true).create(true).mode(0o600).custom_flags(NOFOLLOW_NONBLOCK);
        };
        let mut options = OpenOptions::new();
        private(&mut options);
        let lock = options.open(folder.join(LOCK_FILE))?;
        lock.lock()?;
        let path = folder.join(STORE_FILE);
        let mut records = match read_records(&path) {
            Ok(records) => records,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Records::default(),
            Err(error) => return Err(error),
        };
        work(&mut records);
        let fresh = folder.join(format!("{STORE_FILE}.{}", std::process::id()));
        let mut options = OpenOptions::new();
        private(&mut options);
        let mut file = options.truncate(true).open(&fresh)?;
        file.write_all(&serde_json::to_vec_pretty(&records)?)?;
        file.sync_all()?;
        std::fs::rename(&fresh, &path).inspect_err(|_| drop(std::fs::remove_file(&fresh)))?;
        self.records = records;
        Ok(())
    }
}

/// Does not follow a symlink in the last component and does not block on a pipe.
pub(crate) const NOFOLLOW_NONBLOCK: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits() as i32;

fn read_records(path: &Path) -> io::Result<Records> {
    let file = OpenOptions::new().read(true).custom_flags(NOFOLLOW_NONBLOCK).open(path)?;
    let about = file.metadata()?;
    if !is_writable_only_by_us(&about) {
        return Err(io::Error::other("other users can write to it"));
    }
    let mut text = String::new();
    File::take(file, MAX_STORE_BYTES).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// Returns whether only this user and root can write to a file.
pub(crate) fn is_writable_only_by_us(about: &std::fs::Metadata) -> bool {
    let owner = about.uid();
    (owner == rustix::process::geteuid().as_raw() || owner == 0) && about.mode() & 0o022 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn world(home: &Path) -> Environment {
        let variables = [("HOME".to_owned(), home.display().to_string())].into();
        Environment { variables, current_dir: home.to_owned() }
    }

    #[test]
    fn a_file_is_approved_with_its_content_at_its_path_and_until_it_is_revoked() {
        let home = tempfile::tempdir().unwrap();
        let here = home.path().canonicalize().unwrap();
        let world = world(&here);
        let (path, other) = (here.join("octoprox.yaml"), here.join("link.yaml"));
        std::fs::write(&path, "a").unwrap();
        std::os::unix::fs::symlink(&path, &other).unwrap();
        let mut store = TrustStore::open(&world).unwrap();
        let approval = |store: &TrustStore, path: &Path| store.approval(&SettingsFile::open(path).unwrap());
        assert_eq!(approval(&store, &path), Approval::Unknown);
        store.approve(&[SettingsFile::open(&other).unwrap().record()]).unwrap();
        let store = TrustStore::open(&world).unwrap();
        assert_eq!(
            (approval(&store, &path), approval(&store, &other)),
            (Approval::Approved, Approval::Approved)
        );
        std::fs::write(&path, "b").unwrap();
        assert_eq!(
            (approval(&store, &path), approval(&store, &other)),
            (Approval::Changed, Approval::Changed)
        );
        std::fs::write(&path, "a").unwrap();
        std::fs::write(here.join("evil.yaml"), "a").unwrap();
        std::fs::remove_file(&other).unwrap();
        std::os::unix::fs::symlink(here.join("evil.yaml"), &other).unwrap();
        assert_eq!(approval(&store, &other), Approval::Changed, "the same text at another place");
        let mut store = TrustStore::open(&world).unwrap();
        assert_eq!(store.revoke(&[path.clone()].into()).unwrap(), 1);
        assert_eq!(approval(&TrustStore::open(&world).unwrap(), &path), Approval::Unknown);
    }

    #[test]
    fn records_that_others_could_have_written_are_not_believed() {
        let home = tempfile::tempdir().unwrap();
        let world = world(home.path());
        TrustStore::open(&world).unwrap().approve(&[]).unwrap();
        let path = TrustStore::open(&world).unwrap().path().unwrap();
        let folder = path.parent().unwrap();
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(TrustStore::open(&world).is_err());
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(TrustStore::open(&world).is_err());
    }
}
