//! Names that nobody can guess. From the kernel itself: the generator of the cryptographic library takes a tenth of a
//! second to warm up, which a start should not wait for.

use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// Two hexadecimal digits for each of `N` random bytes; a few bytes always come at once.
pub(crate) fn hex<const N: usize>() -> io::Result<String> {
    let mut bytes = [0; N];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if filled < N {
        return Err(io::Error::other("the kernel gave too few random bytes"));
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
