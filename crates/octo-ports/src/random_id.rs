//! Ids of records that only their owner is to find: unguessable, and never a path.

use crate::{StoreError, StoreResult};
use aws_lc_rs::rand;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// 128 bits, five per letter.
const LEN: usize = 26;

/// Prefix of the handle of a stored result.
pub const RESULT_PREFIX: &str = "r_";
/// Prefix of the id of a workflow run.
pub const RUN_PREFIX: &str = "w_";

pub fn new_id(prefix: &str) -> StoreResult<String> {
    let mut random = [0; 16];
    rand::fill(&mut random).map_err(|_| StoreError::internal("no random bytes for an id"))?;
    let mut left = u128::from_le_bytes(random);
    let mut id = String::with_capacity(prefix.len() + LEN);
    id.push_str(prefix);
    for _ in 0..LEN {
        id.push(char::from(ALPHABET.get((left & 31) as usize).copied().unwrap_or(b'a')));
        left >>= 5;
    }
    Ok(id)
}

/// Returns whether an untrusted text is a well-formed id with this prefix.
pub fn is_id(prefix: &str, text: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|letters| {
        letters.len() == LEN && letters.bytes().all(|letter| ALPHABET.contains(&letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_differ_and_look_like_ids() {
        let ids: HashSet<String> = (0..1000).map(|_| new_id(RESULT_PREFIX).unwrap()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| is_id(RESULT_PREFIX, id) && id.len() == 28));
        assert!(ids.iter().all(|id| !is_id(RUN_PREFIX, id)));
    }

    #[test]
    fn nothing_else_does() {
        for text in
            ["", "r_", "r_../../../etc/passwd......", &format!("r_{}", "A".repeat(26)), &"r_é".repeat(9)]
        {
            assert!(!is_id(RESULT_PREFIX, text), "{text}");
        }
    }
}
