//! Names under which tools are listed: letters, digits, `_` and `-`, of limited length.

/// Maximum length. Clients add their own prefixes, and this is what they leave.
pub const MAX_NAME_LEN: usize = 46;
const SUFFIX_LEN: usize = 7;

/// Returns whether every model API accepts the name.
pub fn is_valid_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Some clients fold `-` into `_` and ignore case, so names that differ only in these collide.
pub fn normalized_name(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// The listed form of a name: unchanged if it fits, otherwise shortened with a suffix that depends only on
/// the whole name, so that it does not change with other items.
pub fn listed_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
        .collect();
    if plain.len() <= MAX_NAME_LEN && plain == name && !plain.is_empty() {
        plain
    } else {
        with_suffix(&plain, name)
    }
}

/// Adds the suffix even if the name fits: for the second of two names that collide.
pub fn with_suffix(plain: &str, whole: &str) -> String {
    let keep = plain.len().min(MAX_NAME_LEN - SUFFIX_LEN - 1);
    format!("{}_{}", plain.get(..keep).unwrap_or_default(), digest(whole))
}

/// FNV-1a in base 32: not secret, only stable.
fn digest(text: &str) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^= hash >> 29;
    (0..SUFFIX_LEN)
        .map(|at| char::from(LETTERS.get((hash >> (5 * at)) as usize & 31).copied().unwrap_or(b'a')))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_plain_names_stay() {
        assert_eq!(listed_name("notion__search"), "notion__search");
        assert_eq!(listed_name(&"a".repeat(46)), "a".repeat(46));
    }

    #[test]
    fn long_or_strange_names_are_shortened_stably_and_stay_apart() {
        let long: Vec<String> =
            (0..200).map(|n| listed_name(&format!("server__{}_{n}", "x".repeat(128)))).collect();
        let unique: std::collections::HashSet<_> = long.iter().collect();
        assert_eq!(unique.len(), 200);
        assert!(long.iter().all(|name| name.len() <= MAX_NAME_LEN && is_valid_name(name)));
        assert_ne!(listed_name("a.b"), listed_name("a/b"));
        assert_eq!(listed_name("a.b"), listed_name("a.b"));
    }
}
