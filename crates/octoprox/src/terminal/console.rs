//! Writing without a panic when nobody reads any more.

use std::io::{self, Write};

/// Data, on standard output.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Talk, on standard error.
pub fn print_err(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
