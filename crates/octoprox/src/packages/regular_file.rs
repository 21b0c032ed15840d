//! Opens files whose paths come from somebody else.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file for reading. Refuses devices, pipes and files above the limit instead of waiting for them.
pub fn open_regular(path: &Path, max_bytes: u64) -> io::Result<File> {
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblock).open(path)?;
    let about = file.metadata()?;
    match about.is_file() {
        false => Err(io::Error::other("it is not a file")),
        true if about.len() > max_bytes => {
            Err(io::Error::other(format!("it has more than {max_bytes} bytes")))
        }
        true => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "four").unwrap();
        for path in [&pipe, folder.path(), Path::new("/dev/zero")] {
            assert!(open_regular(path, 4).is_err(), "{}", path.display());
        }
        assert!(open_regular(&file, 4).is_ok() && open_regular(&file, 3).is_err());
    }
}
