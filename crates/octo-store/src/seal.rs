//! Encryption of secrets on disk, with a key outside the database, each bound to its row.

use crate::{SqliteError, private_files, result_handle};
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::{hkdf, rand};
use octo_model::Secret;
use octo_model::hex;
use octo_ports::{Port, StoreError, StoreResult};
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tokio::sync::OnceCell;

const KEY_FILE: &str = "seal.key";
const KEY_LEN: usize = 32;
/// Shorter secrets can be guessed.
const MIN_SECRET_LEN: usize = 16;
/// The first byte of sealed data, for future formats.
const SEAL_VERSION: u8 = 1;

pub(crate) struct Seal(RandomizedNonceKey);

impl Seal {
    /// With the operator's secret, or with the directory's own key, which is created if necessary.
    pub(crate) fn open(dir: &Path, secret: Option<&str>) -> Result<Self, SqliteError> {
        let path = dir.join(KEY_FILE);
        let key = match secret {
            Some(secret) => derive_key(secret),
            None => read_or_create_key(&path),
        };
        let made = key.and_then(|key| {
            RandomizedNonceKey::new(&AES_256_GCM, &key).map_err(|_| Error::other("the key cannot be used"))
        });
        made.map(Self).map_err(SqliteError::file(&path))
    }

    /// Returns whether the directory has its own key.
    pub(crate) fn has_key(dir: &Path) -> bool {
        dir.join(KEY_FILE).is_file()
    }

    pub(crate) fn seal(&self, plain: &str, bound: &[&str]) -> Option<Vec<u8>> {
        let mut text = plain.as_bytes().to_vec();
        let nonce = self.0.seal_in_place_append_tag(Aad::from(binding_digest(bound)), &mut text).ok()?;
        Some([&[SEAL_VERSION], nonce.as_ref().as_slice(), &text].concat())
    }

    /// `None` if it was changed, moved to another row, or sealed with another key.
    pub(crate) fn unseal(&self, sealed: &[u8], bound: &[&str]) -> Option<String> {
        let (nonce, text) = sealed.strip_prefix(&[SEAL_VERSION])?.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let plain = self.0.open_in_place(nonce, Aad::from(binding_digest(bound)), &mut text).ok()?;
        String::from_utf8(plain.to_vec()).ok()
    }
}

/// A seal whose key is read or created on first use.
pub(crate) struct LazySeal {
    dir: PathBuf,
    secret: Option<Secret>,
    seal: OnceCell<Seal>,
}

impl LazySeal {
    pub(crate) fn new(dir: &Path, secret: Option<Secret>) -> Self {
        Self { dir: dir.to_owned(), secret, seal: OnceCell::new() }
    }

    pub(crate) async fn open(&self, port: Port) -> StoreResult<&Seal> {
        let open = || async {
            let (dir, secret) = (self.dir.clone(), self.secret.clone());
            let opened = tokio::task::spawn_blocking(move || {
                private_files::create_private_dir(&dir)?;
                Seal::open(&dir, secret.as_ref().map(Secret::expose))
            });
            let opened = opened.await.map_err(StoreError::internal)?;
            opened.map_err(|error| StoreError::unavailable(port, error))
        };
        self.seal.get_or_try_init(open).await
    }
}

/// The directory's own key, created if it does not exist.
pub(crate) fn directory_key(path: &Path) -> Result<[u8; KEY_LEN], SqliteError> {
    read_or_create_key(path).map_err(SqliteError::file(path))
}

/// Digest of length-prefixed parts, so that no two rows have the same.
fn binding_digest(parts: &[&str]) -> Vec<u8> {
    let mut whole = Vec::new();
    for part in parts {
        whole.extend_from_slice(&(part.len() as u64).to_le_bytes());
        whole.extend_from_slice(part.as_bytes());
    }
    digest(&SHA256, &whole).as_ref().to_vec()
}

/// Digest of parts, for comparison.
pub(crate) fn fingerprint(parts: &[&str]) -> String {
    hex(&binding_digest(parts))
}

fn derive_key(secret: &str) -> Result<[u8; KEY_LEN], Error> {
    if secret.len() < MIN_SECRET_LEN {
        return Err(Error::new(ErrorKind::InvalidInput, "the hub's secret has fewer than 16 characters"));
    }
    let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"octoprox");
    let mut key = [0; KEY_LEN];
    let whole = salt.extract(secret.as_bytes());
    let filled = whole.expand(&[b"seal 1"], hkdf::HKDF_SHA256).and_then(|okm| okm.fill(&mut key));
    filled.map(|()| key).map_err(|_| Error::other("the key cannot be derived"))
}

/// Reads or creates the key file. It is linked to its name when complete, so that concurrent processes end up
/// with the same key.
fn read_or_create_key(path: &Path) -> Result<[u8; KEY_LEN], Error> {
    if !path.exists() {
        let mut key = [0; KEY_LEN];
        rand::fill(&mut key).map_err(|_| Error::other("no random bytes for a key"))?;
        let name = result_handle::new_handle().map_err(Error::other)?;
        let part = path.with_extension(format!("{name}.part"));
        let written = private_files::create_new(&part).and_then(|mut file| {
            file.write_all(&key)?;
            file.sync_all()
        });
        let linked = written.and_then(|()| std::fs::hard_link(&part, path));
        let _ = std::fs::remove_file(&part);
        match linked {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let key = std::fs::read(path)?;
    key.try_into().map_err(|_| Error::new(ErrorKind::InvalidData, "the key does not have 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_secret_opens_only_in_its_own_row_and_with_its_own_key() {
        let temp = tempfile::tempdir().unwrap();
        let seal = Seal::open(temp.path(), None).unwrap();
        let sealed = seal.seal("k3y", &["a", "bc"]).unwrap();
        assert!(!sealed.windows(3).any(|part| part == b"k3y"));
        assert_ne!(sealed, seal.seal("k3y", &["a", "bc"]).unwrap());
        let again = Seal::open(temp.path(), None).unwrap();
        assert_eq!(again.unseal(&sealed, &["a", "bc"]).as_deref(), Some("k3y"));
        assert_eq!(again.unseal(&sealed, &["ab", "c"]), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(again.unseal(&changed, &["a", "bc"]), None, "{at}");
            assert_eq!(again.unseal(&sealed[..at], &["a", "bc"]), None);
        }
        let mode = std::fs::metadata(temp.path().join(KEY_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_operators_secret_needs_no_file() {
        let temp = tempfile::tempdir().unwrap();
        let one = Seal::open(temp.path(), Some("a long enough secret")).unwrap();
        let sealed = one.seal("k3y", &["a"]).unwrap();
        let two = Seal::open(temp.path(), Some("another long secret")).unwrap();
        assert_eq!(
            (one.unseal(&sealed, &["a"]).as_deref(), two.unseal(&sealed, &["a"])),
            (Some("k3y"), None)
        );
        assert!(Seal::open(temp.path(), Some("short")).is_err());
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_damaged_key_is_refused_and_not_replaced() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join(KEY_FILE), "short").unwrap();
        assert!(Seal::open(temp.path(), None).is_err());
        assert_eq!(std::fs::read(temp.path().join(KEY_FILE)).unwrap(), b"short");
    }
}
