//! File names in patches.

use octo_toolkit::ToolError;

/// The name after `--- ` or `+++ `; `None` for `/dev/null`.
pub fn from_header(line: &str) -> Result<Option<String>, ToolError> {
    let name = line.get(4..).unwrap_or_default();
    // A timestamp may follow after a tab.
    let name = match name.strip_prefix('"').and_then(|rest| rest.rfind('"')) {
        Some(end) => name.get(..end + 2).unwrap_or(name),
        None => name.split('\t').next().unwrap_or(name),
    };
    let name = unquote(name.trim_end());
    if name.is_empty() {
        return Err(ToolError::invalid("A file of the patch has no name.")
            .hint("Add --- a/path and +++ b/path before its hunks."));
    }
    Ok((name != "/dev/null").then_some(name))
}

/// The two names of `diff --git a/x b/x`, if they can be told apart.
pub fn from_git_header(both: &str) -> (Option<String>, Option<String>) {
    let both = both.trim_end();
    let half = both.len() / 2;
    let same = both.get(..half).zip(both.get(half + 1..));
    let parted = match same {
        Some((old, new))
            if both.as_bytes().get(half) == Some(&b' ') && after_slash(old) == after_slash(new) =>
        {
            Some((old, new))
        }
        _ => both.split_once(' ').filter(|(_, new)| !new.contains(' ')),
    };
    match parted {
        Some((old, new)) => strip_prefixes(Some(unquote(old)), Some(unquote(new)), true),
        None => (None, None),
    }
}

fn after_slash(name: &str) -> &str {
    name.split_once('/').map_or(name, |(_, rest)| rest)
}

/// Removes `a/` and `b/` if both sides have them.
pub fn strip_prefixes(
    old: Option<String>,
    new: Option<String>,
    git: bool,
) -> (Option<String>, Option<String>) {
    let has = |name: &Option<String>, prefix| name.as_deref().is_none_or(|name| name.starts_with(prefix));
    // Options of git may produce i/ and w/, c/ and o/ instead.
    let pairs = [("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("b/", "a/")];
    let mut known = pairs.iter().take(if git { pairs.len() } else { 1 });
    let fitting = known.find(|(left, right)| has(&old, left) && has(&new, right));
    let Some((left, right)) = fitting else { return (old, new) };
    let strip = |name: Option<String>, prefix: &str| {
        name.map(|name| name.strip_prefix(prefix).map(str::to_owned).unwrap_or(name))
    };
    (strip(old, left), strip(new, right))
}

/// Unquotes a name that git has quoted, with its escapes.
pub fn unquote(name: &str) -> String {
    let Some(inner) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else {
        return name.to_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(digit @ b'0'..=b'3') => {
                let mut value = digit - b'0';
                // At most three digits; the rest belongs to the name.
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|byte| (b'0'..=b'7').contains(byte)) else { break };
                    value = value * 8 + (digit - b'0');
                }
                bytes.push(value);
            }
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'a') => bytes.push(0x07),
            Some(b'b') => bytes.push(0x08),
            Some(b'v') => bytes.push(0x0b),
            Some(b'f') => bytes.push(0x0c),
            Some(other) => bytes.push(other),
            None => bytes.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Checks that a name stays beneath the directory of the patch.
pub fn check_relative(name: &str) -> Result<&str, ToolError> {
    let name = name.strip_prefix("./").unwrap_or(name);
    let odd = name.is_empty() || name.starts_with('/') || name.split('/').any(|part| part == "..");
    if odd {
        return Err(ToolError::denied(format!(
            "The patch names {name:?}, which is not beneath its directory."
        ))
        .hint("Use names relative to `path`, without .. in them."));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        let rows = [
            ("--- a/x.txt", Some("a/x.txt")),
            ("--- a/x y.txt\t2024-01-01 10:00", Some("a/x y.txt")),
            ("--- /dev/null", None),
            ("+++ \"b/gr\\303\\274n\\t.txt\"", Some("b/grün\t.txt")),
            ("--- \"a/x\\\"y\"\t2024-01-01 10:00", Some("a/x\"y")),
            ("--- \"a/\\0331\\a\\0017\"", Some("a/\u{1b}1\u{7}\u{1}7")),
        ];
        for (line, wanted) in rows {
            assert_eq!(from_header(line).unwrap().as_deref(), wanted, "{line}");
        }
        assert!(from_header("--- ").is_err());
        let both = |text| from_git_header(text);
        assert_eq!(both("a/x y b/x y"), (Some("x y".into()), Some("x y".into())));
        assert_eq!(both("a/old b/new"), (Some("old".into()), Some("new".into())));
        assert_eq!(both("x x"), (Some("x".into()), Some("x".into())));
    }

    #[test]
    fn prefixes_go_only_when_both_sides_have_them() {
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(strip_prefixes(some("a/x"), some("b/x"), false), (some("x"), some("x")));
        assert_eq!(strip_prefixes(some("a/x"), some("a/x"), false), (some("a/x"), some("a/x")));
        assert_eq!(strip_prefixes(None, some("b/x"), false), (None, some("x")));
        assert_eq!(strip_prefixes(some("i/x"), some("w/x"), true), (some("x"), some("x")));
        assert_eq!(strip_prefixes(some("i/x"), some("w/x"), false), (some("i/x"), some("w/x")));
    }

    #[test]
    fn names_that_lead_out_are_denied() {
        assert_eq!(check_relative("./a/b").unwrap(), "a/b");
        for name in ["../x", "/etc/passwd", "a/../../x", ""] {
            assert!(check_relative(name).is_err(), "{name}");
        }
    }
}
