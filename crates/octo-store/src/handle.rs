//! Names of spills: nobody can guess one, and none is ever a path.

use aws_lc_rs::rand;
use octo_model::ToolError;

const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
pub(crate) const PREFIX: &str = "r_";
/// 128 bits, five to a letter.
const LENGTH: usize = 26;

pub(crate) fn fresh() -> Result<String, ToolError> {
    let mut random = [0; 16];
    rand::fill(&mut random).map_err(|_| ToolError::internal("no random bytes for a handle"))?;
    let mut left = u128::from_le_bytes(random);
    let mut handle = String::with_capacity(PREFIX.len() + LENGTH);
    handle.push_str(PREFIX);
    for _ in 0..LENGTH {
        handle.push(char::from(LETTERS.get((left & 31) as usize).copied().unwrap_or(b'a')));
        left >>= 5;
    }
    Ok(handle)
}

/// Whether a text from outside could be one of ours.
pub(crate) fn is_handle(text: &str) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|letters| {
        letters.len() == LENGTH && letters.bytes().all(|letter| LETTERS.contains(&letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_differ_and_look_like_handles() {
        let handles: std::collections::HashSet<String> = (0..1000).map(|_| fresh().unwrap()).collect();
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
