//! Digests of texts with secrets, with a key that stays on this machine: from the digest alone, a weak secret cannot be
//! guessed.

use aws_lc_rs::hmac;
use octo_model::{hex, sha256_hex};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

const KEY_FILE: &str = "digest.key";
const KEY_BYTES: usize = 32;
/// Before a keyed digest, to tell it from the plain ones of earlier versions.
const KEYED_PREFIX: &str = "hmac-sha256:";

/// The key of a directory that only the user can read.
pub struct DigestKey(hmac::Key);

impl DigestKey {
    /// Reads the key of a directory, and creates both if they are missing.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(KEY_FILE);
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            File::open(&path)?.take(KEY_BYTES as u64).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = match read() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create(folder, &path)?;
                read()?
            }
            read => read?,
        };
        if bytes.len() < KEY_BYTES {
            return Err(io::Error::other(format!("{} is incomplete; delete it", path.display())));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    pub fn digest(&self, text: &str) -> String {
        format!("{KEYED_PREFIX}{}", self.hex(text))
    }

    /// The digest in hexadecimal.
    pub fn hex(&self, text: &str) -> String {
        hex(hmac::sign(&self.0, text.as_bytes()).as_ref())
    }

    /// Whether a digest is that of a text. It may have been written by an earlier version, which used no key.
    pub fn is_of(&self, digest: &str, text: &str) -> bool {
        match digest.starts_with(KEYED_PREFIX) {
            true => digest == self.digest(text),
            false => digest == sha256_hex(text.as_bytes()),
        }
    }
}

/// Creates the file whole. Of several processes, the first one wins.
fn create(folder: &Path, path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut bytes = [0; KEY_BYTES];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| io::Error::other("system random number generator unavailable"))?;
    let fresh = folder.join(format!("{KEY_FILE}.{}", std::process::id()));
    let _ = std::fs::remove_file(&fresh);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let linked = file.write_all(&bytes).and_then(|()| file.sync_all());
    let linked = linked.and_then(|()| std::fs::hard_link(&fresh, path));
    let _ = std::fs::remove_file(&fresh);
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_key_is_kept_and_private() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = DigestKey::open(&one.path().join("deep")).unwrap();
        let digest = key.digest("hush");
        assert!(DigestKey::open(&one.path().join("deep")).unwrap().is_of(&digest, "hush"));
        assert!(!DigestKey::open(other.path()).unwrap().is_of(&digest, "hush"));
        assert!(!key.is_of(&digest, "other") && !digest.contains(&sha256_hex(b"hush")));
        assert!(key.is_of(&sha256_hex(b"hush"), "hush"), "an earlier version wrote it");
        let mode = one.path().join("deep").join(KEY_FILE).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(other.path().join(KEY_FILE), "short").unwrap();
        assert!(DigestKey::open(other.path()).is_err());
    }
}
