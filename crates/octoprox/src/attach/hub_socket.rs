//! Sockets of background hubs, in a directory that only their user can open.

use super::hub_key::HubKey;
use super::log_rotation::previous_log;
use crate::stores::DigestKey;
use rustix::fs::{FlockOperation, flock};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest path of a socket, in bytes.
const MAX_SOCKET_PATH_LEN: usize = 107;
const SOCKET_EXTENSION: &str = "sock";
const LOG_EXTENSION: &str = "log";
/// Logs of hubs that have ended are kept for this long.
const MAX_FILE_AGE: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Directory for sockets, locks and logs of background hubs.
#[derive(Debug, Clone)]
pub struct RuntimeDir(PathBuf);

/// Files of one hub.
#[derive(Debug, Clone)]
pub struct HubFiles {
    pub socket: PathBuf,
    pub lock: PathBuf,
    pub log: PathBuf,
}

/// Lock that is held while a hub is started or its socket is removed.
pub struct StartLock(#[expect(dead_code, reason = "closing it releases the lock")] File);

impl RuntimeDir {
    /// Opens the directory, and creates it if necessary. Fails if another user could change it.
    pub fn open(runtime_dir: Option<&str>) -> io::Result<Self> {
        let uid = geteuid().as_raw();
        let named = runtime_dir.map(PathBuf::from).filter(|path| path.is_absolute());
        let systemd = PathBuf::from(format!("/run/user/{uid}"));
        let parents = named.into_iter().chain([systemd]).filter(|path| is_private(path, uid));
        let candidates = parents.map(|parent| parent.join("octoprox"));
        let mut error = io::Error::from(io::ErrorKind::NotFound);
        for path in candidates.chain([PathBuf::from(format!("/tmp/octoprox-{uid}"))]) {
            match Self::create(path, uid) {
                Ok(created) => return Ok(created),
                Err(why) => error = why,
            }
        }
        Err(error)
    }

    fn create(path: PathBuf, uid: u32) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if !is_private(&path, uid) {
            let why = format!("{} is not a directory that only you can use", path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let longest = path.join("x".repeat(32)).into_os_string().len();
        if longest > MAX_SOCKET_PATH_LEN {
            return Err(io::Error::other(format!("the path {} is too long for a socket", path.display())));
        }
        Ok(Self(path))
    }

    /// The key of this directory.
    pub fn digests(&self) -> io::Result<DigestKey> {
        DigestKey::open(&self.0)
    }

    pub fn files(&self, key: &HubKey) -> HubFiles {
        HubFiles::of_socket(&self.0.join(key.as_str()).with_extension(SOCKET_EXTENSION))
    }

    /// Returns the files of all hubs, also of those that have ended.
    pub fn all(&self) -> io::Result<Vec<HubFiles>> {
        let paths = std::fs::read_dir(&self.0)?.flatten().map(|entry| entry.path());
        let is_known = |path: &PathBuf| {
            path.extension().is_some_and(|name| name == SOCKET_EXTENSION || name == LOG_EXTENSION)
        };
        let sockets: BTreeSet<PathBuf> =
            paths.filter(is_known).map(|path| path.with_extension(SOCKET_EXTENSION)).collect();
        Ok(sockets.iter().map(|socket| HubFiles::of_socket(socket)).collect())
    }

    /// Removes the files that hubs of earlier programs and settings have left.
    pub fn remove_old_files(&self) -> io::Result<()> {
        for files in self.all()? {
            let modified = std::fs::metadata(&files.log).and_then(|log| log.modified());
            let age = modified.ok().and_then(|modified| modified.elapsed().ok());
            if age.is_some_and(|age| age > MAX_FILE_AGE)
                && files.connect().is_err()
                && let Ok(_lock) = files.try_lock()
            {
                for path in [&files.socket, &files.log, &previous_log(&files.log)] {
                    let _ = std::fs::remove_file(path);
                }
            }
        }
        Ok(())
    }
}

/// Whether a directory exists, is no link, and only this user can use it.
fn is_private(path: &Path, uid: u32) -> bool {
    let metadata = std::fs::symlink_metadata(path);
    metadata
        .is_ok_and(|found| found.is_dir() && found.uid() == uid && found.permissions().mode() & 0o077 == 0)
}

impl HubFiles {
    pub fn of_socket(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
            lock: socket.with_extension("lock"),
            log: socket.with_extension(LOG_EXTENSION),
        }
    }

    /// Connects to the hub. Fails if another user's process listens.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let stream = UnixStream::connect(&self.socket)?;
        if socket_peercred(&stream)?.uid != geteuid() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the hub belongs to another user"));
        }
        Ok(stream)
    }

    /// Listens; replaces the socket of a hub that has ended. The caller's starter holds the lock.
    pub fn bind(&self) -> io::Result<UnixListener> {
        if self.connect().is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another hub listens already"));
        }
        match std::fs::remove_file(&self.socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&self.socket)?;
        std::fs::set_permissions(&self.socket, PermissionsExt::from_mode(0o600))?;
        Ok(listener)
    }

    /// Waits for the lock.
    pub fn lock(&self) -> io::Result<StartLock> {
        self.lock_with(FlockOperation::LockExclusive)
    }

    /// Takes the lock unless somebody holds it.
    pub fn try_lock(&self) -> io::Result<StartLock> {
        self.lock_with(FlockOperation::NonBlockingLockExclusive)
    }

    fn lock_with(&self, operation: FlockOperation) -> io::Result<StartLock> {
        let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(nofollow);
        let file = options.open(&self.lock)?;
        flock(&file, operation)?;
        Ok(StartLock(file))
    }

    /// Identity of the socket, to tell whether another hub has replaced it.
    pub fn socket_identity(&self) -> Option<(u64, u64)> {
        let metadata = std::fs::symlink_metadata(&self.socket).ok()?;
        Some((metadata.dev(), metadata.ino()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_private_directory_is_used() {
        let top = tempfile::tempdir().unwrap();
        let uid = geteuid().as_raw();
        let path = top.path().join("run");
        assert!(RuntimeDir::create(path.clone(), uid).is_ok());
        assert!(RuntimeDir::create(path.clone(), uid).is_ok());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
        assert!(RuntimeDir::create(path.clone(), uid).is_err());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        assert!(RuntimeDir::create(path.clone(), uid + 1).is_err());
        let link = top.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(RuntimeDir::create(link, uid).is_err());
        assert!(RuntimeDir::create(top.path().join("y".repeat(90)), uid).is_err());
    }

    #[test]
    fn old_files_of_ended_hubs_are_removed() {
        let top = tempfile::tempdir().unwrap();
        let dir = RuntimeDir(top.path().to_owned());
        let files = |name: &str| HubFiles::of_socket(&top.path().join(name).with_extension(SOCKET_EXTENSION));
        let (running, old, recent) = (files("running"), files("old"), files("recent"));
        let _listener = running.bind().unwrap();
        for files in [&running, &old, &recent] {
            std::fs::write(&files.log, "x").unwrap();
        }
        std::fs::write(previous_log(&old.log), "x").unwrap();
        let past = std::time::SystemTime::now() - MAX_FILE_AGE - Duration::from_secs(60);
        for files in [&running, &old] {
            File::open(&files.log).unwrap().set_modified(past).unwrap();
        }
        assert_eq!(dir.all().unwrap().len(), 3);
        dir.remove_old_files().unwrap();
        let left: Vec<PathBuf> = dir.all().unwrap().into_iter().map(|files| files.socket).collect();
        assert_eq!(left, [recent.socket, running.socket]);
        assert!(!previous_log(&old.log).exists());
    }

    #[test]
    fn a_socket_left_behind_is_replaced() {
        let top = tempfile::tempdir().unwrap();
        let files = HubFiles::of_socket(&top.path().join("a.sock"));
        drop(files.bind().unwrap());
        assert!(files.connect().is_err());
        let first = files.socket_identity();
        let _listener = files.bind().unwrap();
        assert!(files.connect().is_ok());
        assert!(first.is_some() && files.socket_identity().is_some());
        let mode = std::fs::metadata(&files.socket).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let lock = files.lock().unwrap();
        assert!(files.try_lock().is_err());
        drop(lock);
        assert!(files.try_lock().is_ok());
    }
}
