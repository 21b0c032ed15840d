//! SHA-256, in hexadecimal.

use aws_lc_rs::digest::{Context, SHA256};
use octo_model::{Kind, ToolError, hex};
use std::io::{Read, Write};

/// Digits of a hash that are shown, and the minimum that a caller must give.
const MIN_HASH_DIGITS: usize = 16;

/// Hashes everything that is written through it.
pub(super) struct HashingWriter<W> {
    context: Context,
    pub inner: W,
}

impl<W> HashingWriter<W> {
    pub fn new(inner: W) -> Self {
        Self { context: Context::new(&SHA256), inner }
    }

    pub fn finish(self) -> String {
        hex(self.context.finish().as_ref())
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.context.update(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// Copies everything with a fixed buffer.
pub(super) fn copy_all(mut from: impl Read, to: &mut impl Write) -> std::io::Result<u64> {
    let mut buffer = vec![0; 128 * 1024];
    let mut total = 0;
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(buffer.get(..read).unwrap_or_default())?;
        total += read as u64;
    }
}

/// The first digits, for display.
pub(super) fn shorten(hash: &str) -> &str {
    hash.get(..MIN_HASH_DIGITS).unwrap_or(hash)
}

/// Refuses what cannot be a hash, before anything is read.
pub(super) fn check_hash_format(wanted: &str) -> Result<(), ToolError> {
    if (MIN_HASH_DIGITS..=64).contains(&wanted.len()) && wanted.bytes().all(|digit| digit.is_ascii_hexdigit())
    {
        return Ok(());
    }
    Err(ToolError::invalid("The expected hash is not a hexadecimal SHA-256 prefix.")
        .hint("Give at least 16 hexadecimal digits, as a read of the file returns them."))
}

/// Whether a file has the content that the caller has seen.
pub(super) fn check_hash(told: &str, wanted: &str, present: Option<&str>) -> Result<(), ToolError> {
    let now = match present {
        Some(present) if present.starts_with(&wanted.to_ascii_lowercase()) => return Ok(()),
        Some(present) => format!("it is {}", shorten(present)),
        None => "it does not exist".to_owned(),
    };
    Err(ToolError::new(
        Kind::Conflict,
        format!("`{told}` does not have the expected hash {}: {now} now.", shorten(wanted)),
    )
    .hint("It was changed in the meantime; read it again and redo the change."))
}
