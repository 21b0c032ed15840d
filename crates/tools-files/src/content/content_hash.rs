//! SHA-256 of content, compared with `if_hash`.

use aws_lc_rs::digest::{Context, SHA256};
use octo_toolkit::{Kind, ToolError, hex};

/// Fewer digits do not prove that the caller has read the file.
const MIN_HASH_DIGITS: usize = 16;

pub use octo_toolkit::sha256_hex;

/// Incremental hash.
pub struct Sha256Stream(Context);

impl Sha256Stream {
    pub fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> String {
        hex(self.0.finish().as_ref())
    }
}

/// Returns a conflict if the file is not what the caller has read.
pub fn check_if_hash(wanted: Option<&str>, found: &str, path: &str) -> Result<(), ToolError> {
    let Some(wanted) = wanted else { return Ok(()) };
    let wanted = wanted.trim().to_ascii_lowercase();
    if wanted.len() < MIN_HASH_DIGITS || !wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ToolError::invalid("if_hash is not a SHA-256 in hexadecimal.").hint(format!(
            "Use the `hash` of an earlier reply, or at least its first {MIN_HASH_DIGITS} digits."
        )));
    }
    if found.starts_with(&wanted) {
        return Ok(());
    }
    Err(ToolError::new(
        Kind::Conflict,
        format!("`{path}` has changed since it was read; nothing was written."),
    )
    .hint(format!(
        "Its hash is now {found}. Call fs_read_text {{\"path\": \"{path}\"}} and redo the change."
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_content_has_its_known_hash() {
        let known = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256_hex(b""), known);
        assert_eq!(Sha256Stream::new().finish(), known);
    }

    #[test]
    fn a_beginning_of_sixteen_digits_is_enough_and_other_content_is_a_conflict() {
        let hash = sha256_hex(b"alpha");
        assert!(check_if_hash(None, &hash, "f").is_ok());
        assert!(check_if_hash(Some(&hash.to_uppercase()), &hash, "f").is_ok());
        assert!(check_if_hash(Some(&hash[..16]), &hash, "f").is_ok());
        assert_eq!(check_if_hash(Some(&hash[..15]), &hash, "f").unwrap_err().kind, Kind::Invalid);
        assert_eq!(check_if_hash(Some("not a hash at all"), &hash, "f").unwrap_err().kind, Kind::Invalid);
        assert_eq!(check_if_hash(Some(&sha256_hex(b"beta")), &hash, "f").unwrap_err().kind, Kind::Conflict);
    }
}
