//! Unguessable names. Uses the kernel's generator: that of the cryptographic library takes 100 ms to initialize,
//! which would delay startup.

use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// Returns two hexadecimal digits for each of `N` random bytes. Never blocks for a few bytes.
pub(crate) fn hex<const N: usize>() -> io::Result<String> {
    let mut bytes = [0; N];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if filled < N {
        return Err(io::Error::other("kernel returned too few random bytes"));
    }
    Ok(octo_model::hex(&bytes))
}
