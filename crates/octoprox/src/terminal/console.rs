//! Output without a panic on a closed pipe.

use std::io::{self, Write};

/// Prints data to standard output.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Prints a message to standard error.
pub fn print_err(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
