//! SSH key of the workspace. Tools see its public key; only `ssh`, started by the hub, reads the private key.

use crate::{Capabilities, Grant};
use aws_lc_rs::rand;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use octo_model::{ToolError, sha256_hex};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PRIVATE_KEY_FILE: &str = "id_ed25519";
const PUBLIC_KEY_FILE: &str = "id_ed25519.pub";
const KNOWN_HOSTS_FILE: &str = "known_hosts";
const KEY_TYPE: &[u8] = b"ssh-ed25519";
const COMMENT: &str = "octoprox@workspace";

/// Key of one workspace and its known hosts. The key is generated on first use.
#[derive(Clone)]
pub struct SshKey(Arc<PathBuf>);

impl SshKey {
    /// One key per default root, stored in the state directory.
    pub fn new(state: &Path, root: &Path) -> Self {
        let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        let mut name = sha256_hex(root.as_os_str().as_encoded_bytes());
        name.truncate(32);
        Self(Arc::new(state.join("ssh").join(name)))
    }

    /// Public key in OpenSSH format, as forges expect it.
    pub fn public(&self) -> Result<String, ToolError> {
        self.ensure()?;
        let text = fs::read_to_string(self.0.join(PUBLIC_KEY_FILE)).map_err(key_error)?;
        Ok(text.trim_end().to_owned())
    }

    /// Path of the private key: for `ssh -i` and [`crate::exec::Job::readable`], never for a reply.
    pub fn private_path(&self) -> Result<PathBuf, ToolError> {
        self.ensure()?;
        Ok(self.0.join(PRIVATE_KEY_FILE))
    }

    /// Directory with the key and the known hosts.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Path of the known_hosts file in OpenSSH format. An operator may edit it.
    pub fn known_hosts(&self) -> PathBuf {
        self.0.join(KNOWN_HOSTS_FILE)
    }

    /// Whether a key of the host (`host`, or `[host]:port`) is stored.
    pub fn has_host(&self, host: &str) -> bool {
        let known = fs::read_to_string(self.known_hosts()).unwrap_or_default();
        known.lines().any(|line| is_entry_for(line, host))
    }

    /// Stores the keys that a host presented first. Lines of other hosts and malformed lines are skipped.
    pub fn add_host(&self, host: &str, lines: &str) -> Result<(), ToolError> {
        self.ensure()?;
        let lines: Vec<&str> = lines.lines().filter(|line| is_host_key(line, host)).collect();
        if lines.is_empty() {
            return Err(ToolError::unavailable("The host presented no key.").hint("Check the host's name."));
        }
        let mut text = lines.join("\n");
        text.push('\n');
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(self.known_hosts());
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(key_error)
    }

    /// Generates the pair in a temporary directory and renames it: if two processes race, one wins and both use
    /// its key.
    fn ensure(&self) -> Result<(), ToolError> {
        if self.0.join(PRIVATE_KEY_FILE).exists() {
            return Ok(());
        }
        let parent = self.0.parent().unwrap_or(&self.0);
        private_folder(parent).map_err(key_error)?;
        let mut nonce = [0u8; 8];
        rand::fill(&mut nonce).map_err(key_error)?;
        let fresh = parent.join(format!(".new-{:016x}", u64::from_le_bytes(nonce)));
        let made = write_pair(&fresh).and_then(|()| fs::rename(&fresh, self.0.as_path()));
        if made.is_err() {
            let _ = fs::remove_dir_all(&fresh);
        }
        match made {
            Err(error) if !self.0.join(PRIVATE_KEY_FILE).exists() => Err(key_error(error)),
            _ => Ok(()),
        }
    }
}

impl Grant for SshKey {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}

fn key_error(error: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable("The workspace's SSH key cannot be used.")
        .hint("Ask the operator to check the hub's state directory.")
        .detail(error)
}

fn is_entry_for(line: &str, host: &str) -> bool {
    line.split_whitespace().next().is_some_and(|hosts| hosts.split(',').any(|name| name == host))
}

fn is_host_key(line: &str, host: &str) -> bool {
    let fields: Vec<&str> = line.split(' ').collect();
    matches!(fields.as_slice(), [name, _, _] if *name == host)
        && line.chars().all(|c| c.is_ascii_graphic() || c == ' ')
}

fn private_folder(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn write_pair(folder: &Path) -> std::io::Result<()> {
    private_folder(folder)?;
    let mut seed = [0u8; 32];
    rand::fill(&mut seed).map_err(std::io::Error::other)?;
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(std::io::Error::other)?;
    let public = public_blob(pair.public_key().as_ref());
    let line = format!("ssh-ed25519 {} {COMMENT}\n", base64(&public));
    let mut check = [0u8; 4];
    rand::fill(&mut check).map_err(std::io::Error::other)?;
    let text = private_text(&seed, pair.public_key().as_ref(), check);
    for (name, mode, text) in [(PRIVATE_KEY_FILE, 0o600, text), (PUBLIC_KEY_FILE, 0o644, line)] {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(folder.join(name))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
    }
    Ok(())
}

fn public_blob(key: &[u8]) -> Vec<u8> {
    let mut blob = Vec::new();
    push_string(&mut blob, KEY_TYPE);
    push_string(&mut blob, key);
    blob
}

/// OpenSSH format (PROTOCOL.key), without a passphrase.
fn private_text(seed: &[u8], key: &[u8], check: [u8; 4]) -> String {
    let mut secret = [check, check].concat();
    push_string(&mut secret, KEY_TYPE);
    push_string(&mut secret, key);
    push_string(&mut secret, &[seed, key].concat());
    push_string(&mut secret, COMMENT.as_bytes());
    let padding = (8 - secret.len() % 8) % 8;
    secret.extend((1..=padding).filter_map(|at| u8::try_from(at).ok()));
    let mut blob = b"openssh-key-v1\0".to_vec();
    for part in [b"none".as_slice(), b"none", b""] {
        push_string(&mut blob, part);
    }
    blob.extend_from_slice(&1u32.to_be_bytes());
    push_string(&mut blob, &public_blob(key));
    push_string(&mut blob, &secret);
    let encoded = base64(&blob);
    let lines: Vec<&str> =
        encoded.as_bytes().chunks(70).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n", lines.join("\n"))
}

/// SSH wire encoding: length, then bytes.
fn push_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            (0..3).fold(0usize, |word, at| word << 8 | usize::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = DIGITS.get(word >> (18 - 6 * at) & 63).copied().unwrap_or(b'=');
            text.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    fn key() -> (tempfile::TempDir, SshKey) {
        let state = tempfile::tempdir().unwrap();
        let key = SshKey::new(state.path(), Path::new("/work/space"));
        (state, key)
    }

    #[test]
    fn base64_agrees_with_the_standard() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn the_key_is_made_once_and_kept_private() {
        let (state, key) = key();
        let public = key.public().unwrap();
        assert!(public.starts_with("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"), "{public}");
        assert!(public.ends_with(" octoprox@workspace"));
        let again = SshKey::new(state.path(), Path::new("/work/space"));
        assert_eq!(again.public().unwrap(), public);
        let other = SshKey::new(state.path(), Path::new("/work/other"));
        assert_ne!(other.public().unwrap(), public);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&key.private_path().unwrap()), 0o600);
        assert_eq!(mode(key.folder()), 0o700);
        assert_eq!(mode(key.folder().parent().unwrap()), 0o700);
    }

    #[test]
    fn two_at_once_make_one_key() {
        let (_state, key) = key();
        let makers: Vec<_> = (0..8)
            .map(|_| {
                let key = key.clone();
                std::thread::spawn(move || key.public().unwrap())
            })
            .collect();
        let made: std::collections::BTreeSet<String> =
            makers.into_iter().map(|maker| maker.join().unwrap()).collect();
        assert_eq!(made.len(), 1);
        let left = fs::read_dir(key.folder().parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "nothing half-made stays behind");
    }

    #[test]
    fn ssh_keygen_reads_the_private_key() {
        let (_state, key) = key();
        let Ok(told) =
            Command::new("ssh-keygen").arg("-y").arg("-f").arg(key.private_path().unwrap()).output()
        else {
            eprintln!("ssh-keygen is not installed");
            return;
        };
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        assert_eq!(String::from_utf8_lossy(&told.stdout).trim_end(), key.public().unwrap());
    }

    #[test]
    fn hosts_are_learnt_exactly() {
        let (_state, key) = key();
        assert!(!key.has_host("example.org"));
        key.add_host("example.org", "# talk\nexample.org ssh-ed25519 AAAA\nevil.org ssh-ed25519 BBBB\n")
            .unwrap();
        key.add_host("[example.org]:2222", "[example.org]:2222 ssh-rsa CCCC\n").unwrap();
        assert!(key.has_host("example.org") && key.has_host("[example.org]:2222"));
        assert!(!key.has_host("evil.org") && !key.has_host("ample.org"));
        assert!(key.add_host("other.org", "example.org ssh-ed25519 AAAA\n").is_err());
        assert_eq!(fs::read_to_string(key.known_hosts()).unwrap().lines().count(), 2);
    }
}
