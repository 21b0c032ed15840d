//! Atomic file replacement with a backup of the previous content.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Settings may contain secrets, so a new file is accessible only to its owner.
const OWNER_ONLY_MODE: u32 = 0o600;
/// Other processes hold a lock for the time of a write.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of backups of a file.
const MAX_BACKUPS: u32 = 999;

/// Replaces a file. `before` is the content when it was read; if it has changed since, nothing is written. Returns the
/// path of the backup.
pub fn replace_file(path: &Path, before: Option<&str>, after: &str) -> io::Result<Option<PathBuf>> {
    replace_with_backup(path, before, after, BackupPlace::Beside)
}

/// Where the old content goes.
#[derive(Debug, Clone, Copy)]
pub enum BackupPlace<'a> {
    /// Next to the file, with its permissions.
    Beside,
    /// In a directory of the hub, for the owner only: the old content has secrets that the new one has not.
    Private(&'a Path),
}

/// Like `replace_file`, with a choice where the backup goes.
pub fn replace_with_backup(
    path: &Path,
    before: Option<&str>,
    after: &str,
    place: BackupPlace<'_>,
) -> io::Result<Option<PathBuf>> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let Some(before) = before else {
        create_file(path, after)?;
        return Ok(None);
    };
    // A symlink is preserved: its target is replaced.
    let real = path.canonicalize()?;
    let held = File::open(&real)?;
    wait_for_lock(&held)?;
    if fs::read_to_string(&real)? != before {
        return Err(changed_meanwhile());
    }
    let mode = held.metadata()?.permissions().mode() & 0o7777;
    let kept = write_backup(&real, before, mode, place)?;
    let fresh = write_temp(&real, after, mode)?;
    fs::rename(&fresh, &real).inspect_err(|_| drop(fs::remove_file(&fresh)))?;
    sync_parent(&real);
    Ok(Some(kept))
}

/// Lets one process at a time change the files of a directory, until the descriptor is dropped. File systems without
/// such locks leave only the comparison with what was read.
pub fn lock_folder_of(path: &Path) -> io::Result<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let held = File::open(folder)?;
    wait_for_lock(&held)?;
    Ok(held)
}

/// Waits for other processes that change the same files, up to a limit.
fn wait_for_lock(held: &File) -> io::Result<()> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match flock(held, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(LOCK_POLL_INTERVAL),
            Err(Errno::WOULDBLOCK) => {
                return Err(io::Error::other("another process has locked it; try again"));
            }
            // Not all file systems have locks.
            Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::BADF) => return Ok(()),
            locked => return Ok(locked?),
        }
    }
}

/// Replaces a generated file, which needs no backup, unless it has changed since it was read.
pub fn replace_generated(path: &Path, before: Option<&str>, text: &str) -> io::Result<()> {
    let current = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        read => Some(read?),
    };
    if current.as_deref() != before {
        return Err(changed_meanwhile());
    }
    // A symlink is preserved: its target is replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mode = fs::metadata(&path).map_or(OWNER_ONLY_MODE, |about| about.permissions().mode() & 0o7777);
    let fresh = write_temp(&path, text, mode)?;
    fs::rename(&fresh, &path).inspect_err(|_| drop(fs::remove_file(&fresh)))?;
    sync_parent(&path);
    Ok(())
}

fn changed_meanwhile() -> io::Error {
    io::Error::other("the file was changed in the meantime; try again")
}

/// Creates a file that must not exist.
fn create_file(path: &Path, text: &str) -> io::Result<()> {
    let fresh = write_temp(path, text, OWNER_ONLY_MODE)?;
    let linked = fs::hard_link(&fresh, path);
    let _ = fs::remove_file(&fresh);
    linked?;
    sync_parent(path);
    Ok(())
}

/// Writes a temporary file next to the target and syncs it.
fn write_temp(path: &Path, text: &str, mode: u32) -> io::Result<PathBuf> {
    let fresh = with_suffix(path, &format!(".octoprox-{}", std::process::id()));
    let _ = fs::remove_file(&fresh);
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY_MODE).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()
    };
    write().inspect_err(|_| drop(fs::remove_file(&fresh)))?;
    Ok(fresh)
}

/// Writes the old text under the first free backup name.
fn write_backup(path: &Path, text: &str, mode: u32, place: BackupPlace<'_>) -> io::Result<PathBuf> {
    let (base, mode) = match place {
        BackupPlace::Beside => (path.to_owned(), mode),
        BackupPlace::Private(folder) => {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            (folder.join(path.file_name().unwrap_or_default()), OWNER_ONLY_MODE)
        }
    };
    for number in 1..=MAX_BACKUPS {
        let kept = with_suffix(&base, &format!(".bak-{number}"));
        let mut file = match OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY_MODE).open(&kept)
        {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            opened => opened?,
        };
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        return Ok(kept);
    }
    Err(io::Error::other(format!("the file already has {MAX_BACKUPS} backups; remove some")))
}

fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

/// Syncs the parent directory. Not all file systems support this.
fn sync_parent(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_the_old_one_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/a.yaml");
        assert_eq!(replace_file(&path, None, "one").unwrap(), None);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(replace_file(&path, None, "other").is_err(), "it is there by now");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let kept = replace_file(&path, Some("one"), "two").unwrap().unwrap();
        assert_eq!(
            (fs::read_to_string(&kept).unwrap().as_str(), kept.ends_with("a.yaml.bak-1")),
            ("one", true)
        );
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(replace_file(&path, Some("two"), "three").unwrap().unwrap().ends_with("a.yaml.bak-2"));
        let error = replace_file(&path, Some("two"), "four").unwrap_err().to_string();
        assert!(error.contains("in the meantime"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "three");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 3, "nothing else is left behind");
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.json"), folder.path().join("link.json"));
        fs::write(&real, "{}").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        replace_file(&link, Some("{}"), "{ }").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "{ }");
    }
}
