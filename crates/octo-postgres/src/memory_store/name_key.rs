//! Texts as PostgreSQL can store and index them.

use aws_lc_rs::digest::{SHA256, digest};
use octo_model::hex;
use octo_search::normalize_name;

/// Maximum bytes of a key. An index refuses more than 2,704 for all keys of a row.
const MAX_KEY_BYTES: usize = 1_000;

/// The normalized form of a name. Of a very long one the beginning, for the order, and a digest.
pub(crate) fn name_key(name: &str) -> String {
    let folded = normalize_name(name);
    if folded.len() <= MAX_KEY_BYTES {
        return folded;
    }
    let digest = hex(digest(&SHA256, folded.as_bytes()).as_ref());
    let length = folded.floor_char_boundary(MAX_KEY_BYTES - digest.len() - 1);
    format!("{} {digest}", folded.get(..length).unwrap_or_default())
}

/// PostgreSQL has no NUL in texts: the replacement character takes its place, when a text is stored and when it is
/// looked for.
pub(crate) fn storable(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_short_distinct_and_in_order() {
        assert_eq!(name_key("  Ada LOVELACE"), "ada lovelace");
        let long = |end: &str| name_key(&format!("{}{end}", "é".repeat(5_000)));
        assert_eq!(long("a"), long("A"));
        assert_ne!(long("a"), long("b"));
        assert!((900..=MAX_KEY_BYTES).contains(&long("a").len()));
        assert!(name_key("e") < long("") && long("") < name_key("ê"));
        // One character that normalizes to eighteen.
        assert!(name_key(&"\u{fdfa}".repeat(170)).len() <= MAX_KEY_BYTES);
    }

    #[test]
    fn nul_is_replaced() {
        assert_eq!(storable("a\0b".to_owned()), "a\u{fffd}b");
    }
}
