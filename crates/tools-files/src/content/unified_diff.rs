//! Unified diffs of changes.

use crate::content::text_lines;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// A diff that takes longer becomes coarser.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// A unified diff; line endings are shown as newlines.
pub struct UnifiedDiff {
    pub text: String,
    pub added: u64,
    pub removed: u64,
}

/// `None` as a name denotes a file that does not exist.
pub fn unified_diff(from: (Option<&str>, &str), to: (Option<&str>, &str)) -> UnifiedDiff {
    let (old, new) = (from.1.replace("\r\n", "\n"), to.1.replace("\r\n", "\n"));
    let diff = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .newline_terminated(true)
        .diff_slices(&text_lines::split(&old), &text_lines::split(&new));
    let name = |side: &str, name: Option<&str>| {
        name.map_or_else(|| "/dev/null".to_owned(), |name| format!("{side}/{}", name.trim_start_matches('/')))
    };
    let text = diff.unified_diff().header(&name("a", from.0), &name("b", to.0)).to_string();
    let tags = || diff.iter_all_changes().map(|change| change.tag());
    UnifiedDiff {
        text,
        added: tags().filter(|tag| *tag == ChangeTag::Insert).count() as u64,
        removed: tags().filter(|tag| *tag == ChangeTag::Delete).count() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::unified_diff;

    #[test]
    fn a_change_is_shown_with_its_surroundings() {
        let diff = unified_diff((Some("f"), "a\r\nb\r\nc\r\n"), (Some("f"), "a\r\nB\r\nc\r\n"));
        assert_eq!(diff.text, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
        assert_eq!((diff.added, diff.removed), (1, 1));
        let last = unified_diff((Some("f"), "a\nb"), (Some("f"), "a\nB"));
        assert!(last.text.ends_with("-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file\n"));
        let new = unified_diff((None, ""), (Some("f"), "a\n"));
        assert_eq!(new.text, "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n");
    }
}
