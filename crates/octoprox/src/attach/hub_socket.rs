//! Sockets of background hubs, in a directory that only their user can open.

use super::hub_key::HubKey;
use rustix::fs::{FlockOperation, flock};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Longest path of a socket, in bytes.
const MAX_SOCKET_PATH_LEN: usize = 107;
const SOCKET_SUFFIX: &str = ".sock";

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

    pub fn files(&self, key: &HubKey) -> HubFiles {
        HubFiles::of_socket(&self.0.join(format!("{}{SOCKET_SUFFIX}", key.as_str())))
    }

    /// Returns the files of all hubs, also of those that have ended.
    pub fn all(&self) -> io::Result<Vec<HubFiles>> {
        let mut found: Vec<PathBuf> =
            std::fs::read_dir(&self.0)?.flatten().map(|entry| entry.path()).collect();
        found.retain(|path| path.to_string_lossy().ends_with(SOCKET_SUFFIX));
        found.sort();
        Ok(found.iter().map(|socket| HubFiles::of_socket(socket)).collect())
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
            log: socket.with_extension("log"),
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
