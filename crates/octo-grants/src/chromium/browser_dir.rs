//! Directory of one browser run: profile, quarantined downloads, files to upload.

use octo_model::{Kind, ToolError};
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

pub(super) struct BrowserDir {
    pub path: PathBuf,
    /// Locked while the hub lives, so that a later start recognizes leftovers.
    _held: File,
    /// Whether the launcher removes it after the last process has exited.
    is_launchers: bool,
    /// A short link to it, for paths with a length limit.
    short_link: Option<PathBuf>,
}

/// Chromium creates a socket in its temporary directory, and a socket path has at most 107 bytes.
const MAX_TEMP_PATH_LEN: usize = 60;

fn browser_dirs(state: &Path) -> PathBuf {
    state.join("browser")
}

fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

impl BrowserDir {
    pub fn new(state: &Path) -> io::Result<Self> {
        let path = browser_dirs(state).join(crate::random::hex::<8>()?);
        create_private_dir(&path)?;
        let held = File::open(&path)?;
        flock(&held, FlockOperation::NonBlockingLockExclusive)?;
        let mut folder = Self { path, _held: held, is_launchers: false, short_link: None };
        for path in [folder.profile(), folder.home(), folder.downloads(), folder.uploads()] {
            create_private_dir(&path)?;
        }
        if folder.home().as_os_str().len() > MAX_TEMP_PATH_LEN {
            let short = std::env::temp_dir().join(format!("octoprox-{}", crate::random::hex::<8>()?));
            std::os::unix::fs::symlink(folder.home(), &short)?;
            folder.short_link = Some(short);
        }
        Ok(folder)
    }

    /// Temporary directory, by a short path.
    pub fn temporary(&self) -> PathBuf {
        self.short_link.clone().unwrap_or_else(|| self.home())
    }

    pub fn leave_to_launcher(&mut self) {
        self.is_launchers = true;
    }

    /// Removes the leftovers of killed hubs.
    pub fn sweep(state: &Path) {
        for entry in std::fs::read_dir(browser_dirs(state)).into_iter().flatten().flatten() {
            let Ok(folder) = File::open(entry.path()) else { continue };
            if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    pub fn profile(&self) -> PathBuf {
        self.path.join("profile")
    }

    pub fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    fn downloads(&self) -> PathBuf {
        self.path.join("downloads")
    }

    fn uploads(&self) -> PathBuf {
        self.path.join("uploads")
    }

    pub fn download_dir(&self, context: &str) -> io::Result<PathBuf> {
        let path = self.downloads().join(check_name(context)?);
        create_private_dir(&path)?;
        Ok(path)
    }

    pub async fn take_download(&self, context: &str, id: &str, most: u64) -> Result<Vec<u8>, ToolError> {
        let name = check_name(context).and_then(|context| Ok(PathBuf::from(context).join(check_name(id)?)));
        let path = self.downloads().join(name.map_err(ToolError::internal)?);
        let read = move || -> Result<Vec<u8>, ToolError> {
            let gone = |error: io::Error| {
                ToolError::not_found("The downloaded file is gone.").hint("Download it again.").detail(error)
            };
            let size = std::fs::symlink_metadata(&path).map_err(gone)?.len();
            if size > most {
                return Err(ToolError::new(Kind::TooLarge, format!("The download has {size} bytes."))
                    .hint(format!("The limit is {most} bytes.")));
            }
            let bytes = std::fs::read(&path).map_err(gone)?;
            let _ = std::fs::remove_file(&path);
            Ok(bytes)
        };
        tokio::task::spawn_blocking(read).await.map_err(ToolError::internal)?
    }

    pub async fn stage_upload(&self, name: &str, bytes: Vec<u8>) -> Result<PathBuf, ToolError> {
        let fit = !name.is_empty()
            && name.len() < 256
            && name != "."
            && name != ".."
            && !name.contains(['/', '\0']);
        if !fit {
            return Err(ToolError::invalid("Invalid name of a file to upload."));
        }
        // Pages see the name, so it is retained; each file gets its own directory.
        let apart = self.uploads().join(crate::random::hex::<6>().map_err(ToolError::internal)?);
        let path = apart.join(name);
        let write =
            move || create_private_dir(&apart).and_then(|()| std::fs::write(&path, bytes)).map(|()| path);
        let written = tokio::task::spawn_blocking(write).await.map_err(ToolError::internal)?;
        written.map_err(ToolError::internal)
    }
}

impl Drop for BrowserDir {
    fn drop(&mut self) {
        if let Some(short) = &self.short_link {
            let _ = std::fs::remove_file(short);
        }
        if !self.is_launchers {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Names given by the browser: hexadecimal numbers with hyphens.
fn check_name(name: &str) -> io::Result<&str> {
    let fine = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if fine { Ok(name) } else { Err(io::Error::other(format!("unexpected name from the browser: `{name}`"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_hub_left_is_swept_and_what_a_living_one_uses_stays() {
        let state = tempfile::tempdir().unwrap();
        let used = BrowserDir::new(state.path()).unwrap();
        let left = browser_dirs(state.path()).join("left");
        create_private_dir(&left.join("profile")).unwrap();
        BrowserDir::sweep(state.path());
        assert!(!left.exists());
        assert!(used.profile().exists());
        let path = used.path.clone();
        drop(used);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn names_that_lead_elsewhere_are_refused() {
        let state = tempfile::tempdir().unwrap();
        let folder = BrowserDir::new(state.path()).unwrap();
        for name in ["", ".", "..", "a/b", "/etc/passwd", "a\0b"] {
            assert!(folder.stage_upload(name, Vec::new()).await.is_err(), "{name}");
        }
        for id in ["../x", "", "a/b", "."] {
            assert!(folder.take_download("ABC", id, 10).await.is_err(), "{id}");
            assert!(folder.download_dir(id).is_err(), "{id}");
        }
        let staged = folder.stage_upload("a b.txt", b"x".to_vec()).await.unwrap();
        assert!(staged.ends_with("a b.txt") && staged.starts_with(&folder.path));
    }
}
