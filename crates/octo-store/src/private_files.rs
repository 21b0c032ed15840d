//! Directories and files that only their owner can access.

use crate::SqliteError;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// All permissions of group and others.
const OTHERS_MASK: u32 = 0o077;

/// Creates the directory or makes it private. Fails if it belongs to another user or cannot be made private.
pub(crate) fn create_private_dir(path: &Path) -> Result<(), SqliteError> {
    let fail = || SqliteError::file(path);
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path).map_err(fail())?;
    let about = std::fs::metadata(path).map_err(fail())?;
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(SqliteError::Foreign { path: path.to_owned(), owner: about.uid() });
    }
    let mode = about.permissions().mode();
    if mode & OTHERS_MASK == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))
        .map_err(|_| SqliteError::Exposed { path: path.to_owned(), mode: mode & 0o7777 })
}

/// Creates the file or makes it private. SQLite gives its auxiliary files the same mode.
pub(crate) fn create_private_file(path: &Path) -> Result<(), SqliteError> {
    match create_new(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let mode = std::fs::metadata(path).map_err(SqliteError::file(path))?.permissions().mode();
            if mode & OTHERS_MASK != 0 {
                std::fs::set_permissions(path, Permissions::from_mode(FILE_MODE))
                    .map_err(SqliteError::file(path))?;
            }
            Ok(())
        }
        Err(error) => Err(SqliteError::file(path)(error)),
    }
}

/// Creates a file that must not exist.
pub(crate) fn create_new(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn directories_and_files_are_made_for_their_owner_alone() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/b");
        create_private_dir(&dir).unwrap();
        create_private_file(&dir.join("f")).unwrap();
        assert_eq!((mode(&dir), mode(&dir.join("f"))), (0o700, 0o600));
    }

    #[test]
    fn open_doors_are_shut() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, inside) = (temp.path().join("d"), temp.path().join("d/f"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(&inside, "").unwrap();
        std::fs::set_permissions(&dir, Permissions::from_mode(0o777)).unwrap();
        std::fs::set_permissions(&inside, Permissions::from_mode(0o644)).unwrap();
        create_private_dir(&dir).unwrap();
        create_private_file(&inside).unwrap();
        assert_eq!((mode(&dir), mode(&inside)), (0o700, 0o600));
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("lent");
        std::fs::create_dir(&dir).unwrap();
        std::os::unix::fs::chown(&dir, Some(65_534), None).unwrap();
        for mode in [0o700, 0o770, 0o750] {
            std::fs::set_permissions(&dir, Permissions::from_mode(mode)).unwrap();
            let error = create_private_dir(&dir).unwrap_err();
            assert!(matches!(error, SqliteError::Foreign { owner: 65_534, .. }), "{error}");
            assert!(error.hint().contains("subdirectory"), "{}", error.hint());
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_door_that_stays_open_is_refused() {
        // The kernel does not allow changing the mode of this one, not even for root.
        let error = create_private_dir(Path::new("/proc/sys")).unwrap_err();
        assert!(matches!(error, SqliteError::Exposed { mode: 0o555, .. }), "{error}");
        assert!(error.hint().contains("chmod 700"));
    }
}
