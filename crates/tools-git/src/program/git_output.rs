//! Parsers of git's machine-readable output. No I/O.

pub mod blame_output;
pub mod diff_output;
pub mod log_output;
pub mod refs_output;
pub mod status_output;

/// NUL-terminated items, without the empty one after the last.
pub fn split_nul(bytes: &[u8]) -> Vec<String> {
    let mut pieces: Vec<String> =
        bytes.split(|byte| *byte == 0).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect();
    if pieces.last().is_some_and(String::is_empty) {
        pieces.pop();
    }
    pieces
}

/// Paths in `git ls-files --stage -z` that are nested repositories.
pub fn gitlinks(bytes: &[u8]) -> Vec<String> {
    let entries = bytes.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 "));
    let paths = entries.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1));
    paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_at_nuls() {
        assert_eq!(split_nul(b"a b\0c\nd\0"), ["a b", "c\nd"]);
        assert!(split_nul(b"").is_empty());
        assert_eq!(gitlinks(b"100644 1 0\ta\x00160000 2 0\tsub\tx\x00160000 3 0\tb\0"), ["sub\tx", "b"]);
    }
}
