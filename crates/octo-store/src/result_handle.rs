//! Handles of stored results: unguessable, and never a path.

use aws_lc_rs::rand;
use octo_ports::{StoreError, StoreResult};

const HANDLE_ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
pub(crate) const HANDLE_PREFIX: &str = "r_";
/// 128 bits, five per letter.
const HANDLE_LEN: usize = 26;

pub(crate) fn new_handle() -> StoreResult<String> {
    let mut random = [0; 16];
    rand::fill(&mut random).map_err(|_| StoreError::internal("no random bytes for a handle"))?;
    let mut left = u128::from_le_bytes(random);
    let mut handle = String::with_capacity(HANDLE_PREFIX.len() + HANDLE_LEN);
    handle.push_str(HANDLE_PREFIX);
    for _ in 0..HANDLE_LEN {
        handle.push(char::from(HANDLE_ALPHABET.get((left & 31) as usize).copied().unwrap_or(b'a')));
        left >>= 5;
    }
    Ok(handle)
}

/// Returns whether an untrusted text is a well-formed handle.
pub(crate) fn is_handle(text: &str) -> bool {
    text.strip_prefix(HANDLE_PREFIX).is_some_and(|letters| {
        letters.len() == HANDLE_LEN && letters.bytes().all(|letter| HANDLE_ALPHABET.contains(&letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_differ_and_look_like_handles() {
        let handles: std::collections::HashSet<String> = (0..1000).map(|_| new_handle().unwrap()).collect();
        assert_eq!(handles.len(), 1000);
        assert!(handles.iter().all(|handle| is_handle(handle) && handle.len() == 28));
    }

    #[test]
    fn nothing_else_does() {
        for text in
            ["", "r_", "r_../../../etc/passwd......", &format!("r_{}", "A".repeat(26)), &"r_é".repeat(9)]
        {
            assert!(!is_handle(text), "{text}");
        }
    }
}
