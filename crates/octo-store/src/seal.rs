//! Keys that secrets are sealed with: the operator's, or one in a file beside the databases.

use crate::{SealKeys, SqliteError, private_files};
use aws_lc_rs::rand;
use octo_model::{BoxFuture, Secret};
use octo_ports::random_id::{RESULT_PREFIX, new_id};
use octo_ports::{KEY_LEN, Keyring, Port, Seal, StoreError, StoreResult};
use std::io::{Error, ErrorKind, Write};
use std::path::Path;

pub(crate) const KEY_FILE: &str = "seal.key";

/// With the operator's secret, or with the directory's own key, which is created if necessary.
fn open_seal(dir: &Path, secret: Option<&Secret>) -> Result<Seal, SqliteError> {
    let path = dir.join(KEY_FILE);
    let seal = match secret {
        Some(secret) => Seal::from_secret(secret).map_err(Error::other),
        None => read_or_create_key(&path).and_then(|key| Seal::new(&key).map_err(Error::other)),
    };
    seal.map_err(SqliteError::file(&path))
}

/// Opens the keys of a directory for a port.
pub(crate) fn keyring_opener(
    port: Port,
    dir: &Path,
    keys: SealKeys,
) -> impl Fn() -> BoxFuture<'static, StoreResult<Keyring>> + Send + Sync + 'static {
    let dir = dir.to_owned();
    move || {
        let (dir, keys) = (dir.clone(), keys.clone());
        Box::pin(async move {
            let opened = tokio::task::spawn_blocking(move || open_keyring(&dir, &keys));
            let opened = opened.await.map_err(StoreError::internal)?;
            opened.map_err(|error| StoreError::unavailable(port, error))
        })
    }
}

/// Earlier keys include the directory's own if the operator has since configured a secret.
pub(crate) fn open_keyring(dir: &Path, keys: &SealKeys) -> Result<Keyring, SqliteError> {
    private_files::create_private_dir(dir)?;
    let current = open_seal(dir, keys.secret.as_ref())?;
    let mut previous: Vec<Seal> =
        keys.previous.iter().map(|secret| open_seal(dir, Some(secret))).collect::<Result<_, _>>()?;
    if keys.secret.is_some() && dir.join(KEY_FILE).is_file() {
        // Needed only if the secret was configured after the first login.
        match open_seal(dir, None) {
            Ok(seal) => previous.push(seal),
            Err(error) => tracing::warn!(target: "store", %error, "cannot read the previous key"),
        }
    }
    Ok(Keyring { current, previous })
}

/// The directory's own key, created if it does not exist.
pub(crate) fn directory_key(path: &Path) -> Result<[u8; KEY_LEN], SqliteError> {
    read_or_create_key(path).map_err(SqliteError::file(path))
}

/// Reads or creates the key file. It is linked to its name when complete, so that concurrent processes end up
/// with the same key.
fn read_or_create_key(path: &Path) -> Result<[u8; KEY_LEN], Error> {
    if !path.exists() {
        let mut key = [0; KEY_LEN];
        rand::fill(&mut key).map_err(|_| Error::other("no random bytes for a key"))?;
        let name = new_id(RESULT_PREFIX).map_err(Error::other)?;
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
        let seal = open_seal(temp.path(), None).unwrap();
        let sealed = seal.seal("k3y", &["a", "bc"]).unwrap();
        assert!(!sealed.bytes().windows(3).any(|part| part == b"k3y"));
        assert_ne!(sealed, seal.seal("k3y", &["a", "bc"]).unwrap());
        let again = open_seal(temp.path(), None).unwrap();
        assert_eq!(again.unseal(&sealed, &["a", "bc"]), Some(Secret::new("k3y")));
        assert_eq!(again.unseal(&sealed, &["ab", "c"]), None);
        for at in 0..sealed.bytes().len() {
            let mut changed = sealed.bytes().to_vec();
            changed[at] ^= 1;
            assert_eq!(again.unseal(&Secret::from_bytes(changed.clone()), &["a", "bc"]), None, "{at}");
            changed.truncate(at);
            assert_eq!(again.unseal(&Secret::from_bytes(changed), &["a", "bc"]), None);
        }
        let mode = std::fs::metadata(temp.path().join(KEY_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_operators_secret_needs_no_file() {
        let temp = tempfile::tempdir().unwrap();
        let one = open_seal(temp.path(), Some(&Secret::new("a long enough secret"))).unwrap();
        let sealed = one.seal("k3y", &["a"]).unwrap();
        let two = open_seal(temp.path(), Some(&Secret::new("another long secret"))).unwrap();
        assert_eq!(
            (one.unseal(&sealed, &["a"]), two.unseal(&sealed, &["a"])),
            (Some(Secret::new("k3y")), None)
        );
        assert!(open_seal(temp.path(), Some(&Secret::new("short"))).is_err());
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_damaged_key_is_refused_and_not_replaced() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join(KEY_FILE), "short").unwrap();
        assert!(open_seal(temp.path(), None).is_err());
        assert_eq!(std::fs::read(temp.path().join(KEY_FILE)).unwrap(), b"short");
    }
}
