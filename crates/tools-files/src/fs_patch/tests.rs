//! Patches on texts: what applies, what is refused, and that diff and patch are inverse.

use super::apply_hunks::{AppliedPatch, apply};
use super::unified_parser::{FilePatch, parse};
use octo_toolkit::{Kind, ToolError};
use proptest::prelude::*;
use similar::TextDiff;

fn patched(text: &str, patch: &str) -> Result<AppliedPatch, ToolError> {
    let files = parse(patch)?;
    assert_eq!(files.len(), 1, "{files:?}");
    apply(text, &files[0], "f")
}

#[test]
fn patches_that_fit() {
    let hunk = "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n";
    let rows = [
        (
            "as git writes it",
            "a\nb\nc\n",
            format!("diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n{hunk}"),
            "a\nB\nc\n",
        ),
        ("without names", "a\nb\nc\n", hunk.to_owned(), "a\nB\nc\n"),
        ("without numbers", "a\nb\nc\n", "@@\n a\n-b\n+B\n c\n".to_owned(), "a\nB\nc\n"),
        ("with empty numbers", "a\nb\nc\n", "@@ @@\n a\n-b\n+B\n c\n".to_owned(), "a\nB\nc\n"),
        ("counts too small", "a\nb\nc\n", "@@ -1,1 +1,1 @@\n a\n-b\n+B\n c\n".to_owned(), "a\nB\nc\n"),
        ("counts too large", "a\nb\nc\n", "@@ -1,9 +1,9 @@\n a\n-b\n+B\n c\n".to_owned(), "a\nB\nc\n"),
        ("wrong line", "x\ny\na\nb\nc\n", hunk.to_owned(), "x\ny\na\nB\nc\n"),
        ("trailing blanks drifted", "a\nb  \nc\n", hunk.to_owned(), "a\nB\nc\n"),
        ("context keeps its blanks", "a\t\nb\nc\n", hunk.to_owned(), "a\t\nB\nc\n"),
        ("LF patch, CRLF file", "a\r\nb\r\nc\r\n", hunk.to_owned(), "a\r\nB\r\nc\r\n"),
        ("CRLF patch, LF file", "a\nb\nc\n", hunk.replace('\n', "\r\n"), "a\nB\nc\n"),
        ("CRLF patch, CRLF file", "a\r\nb\r\nc\r\n", hunk.replace('\n', "\r\n"), "a\r\nB\r\nc\r\n"),
        ("mixed ends stay", "a\nb\r\nc\n", hunk.to_owned(), "a\nB\r\nc\n"),
        ("space of an empty line lost", "a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n".to_owned(), "a\n\nB\n"),
        (
            "no final newline",
            "a\nb",
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file\n"
                .to_owned(),
            "a\nB",
        ),
        (
            "final newline added",
            "a\nb",
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n".to_owned(),
            "a\nb\n",
        ),
        ("marker forgotten", "a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n".to_owned(), "a\nB"),
        ("marker forgotten, appended", "a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n".to_owned(), "a\nb\nc"),
        ("insertion by number", "a\nb\n", "@@ -1,0 +2 @@\n+x\n".to_owned(), "a\nx\nb\n"),
        ("insertion at the end", "a\nb\n", "@@ -2,0 +3 @@\n+x\n".to_owned(), "a\nb\nx\n"),
        (
            "removed line that looks like a header",
            "-- a\nx\n",
            "@@ -1,2 +1,2 @@\n--- a\n+++ b\n x\n".to_owned(),
            "++ b\nx\n",
        ),
        (
            "mail around it",
            "a\nb\nc\n",
            format!("From: me\nSubject: x\n---\n f | 2 +-\n\n--- a/f\n+++ b/f\n{hunk}-- \n2.40.0\n\n"),
            "a\nB\nc\n",
        ),
        (
            "two hunks, the second shifted",
            "0\n1\na\nb\nc\n5\n6\n7\nd\ne\nf\n",
            "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -7,3 +7,3 @@\n d\n-e\n+E\n f\n".to_owned(),
            "0\n1\na\nB\nc\n5\n6\n7\nd\nE\nf\n",
        ),
    ];
    for (what, text, patch, wanted) in rows {
        let applied = patched(text, &patch).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(applied.text, wanted, "{what}");
    }
}

#[test]
fn the_offset_is_told() {
    let applied = patched("x\ny\na\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n").unwrap();
    assert_eq!(
        (applied.offset, applied.added, applied.removed, applied.ignored_whitespace),
        (2, 1, 1, false)
    );
    assert!(patched("a\nb \n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n").unwrap().ignored_whitespace);
}

#[test]
fn patches_that_do_not_fit_say_why() {
    let hunk = "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n";
    let rows = [
        ("a\nB\nc\n", hunk, "Hunk 1 of 1 for `f` seems to be already applied"),
        ("a\nq\nc\n", hunk, "Line 2 is \"q\", the patch has \"b\"."),
        ("zz\na\nb\nc\na\nb\nc\n", hunk, "several places, for example at lines 2 and 5"),
        ("a\n", "@@\n+x\n", "does not specify where"),
        ("a\n", "@@ -9,0 +10 @@\n+x\n", "does not specify where"),
        ("a\nb\nc\n", "@@ -1,1 +1,1 @@\n-a\n+A\n@@ -1,1 +1,1 @@\n-a\n+A\n", "Hunk 2 of 2"),
    ];
    for (text, patch, wanted) in rows {
        let error = patched(text, patch).unwrap_err();
        assert_eq!(error.kind, Kind::Conflict, "{error}");
        assert!(error.text().contains(wanted), "{wanted}: {error}");
    }
}

#[test]
fn what_is_no_patch_is_refused() {
    let rows = [
        ("", "no hunks"),
        ("just words\n", "no hunks"),
        ("--- a/f\n+++ b/f\n", "no hunks"),
        ("@@ -1 +1 @@\n", "empty"),
        ("diff --git a/p.png b/p.png\nindex 1..2\nGIT binary patch\nliteral 5\n", "binary"),
        ("diff --git a/p.png b/p.png\nBinary files a/p.png and b/p.png differ\n", "binary"),
        (
            "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+x\n",
            "symbolic link",
        ),
    ];
    for (patch, wanted) in rows {
        let error = parse(patch).unwrap_err();
        assert_eq!(error.kind, Kind::Invalid);
        assert!(error.message.contains(wanted), "{patch:?}: {error}");
    }
}

#[test]
fn what_git_says_beyond_the_hunks() {
    let patch = "diff --git a/old name b/new name\nsimilarity index 90%\nrename from old name\nrename to new name\n\
                 --- a/old name\n+++ b/new name\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/run.sh b/run.sh\nnew file mode \
                 100755\n--- /dev/null\n+++ b/run.sh\n@@ -0,0 +1 @@\n+x\ndiff --git a/gone b/gone\ndeleted file mode \
                 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\ndiff --git a/m b/m\nold mode 100644\nnew mode \
                 100755\ndiff --git a/empty b/empty\nnew file mode 100644\nindex 0000000..e69de29\n";
    let files = parse(patch).unwrap();
    let [renamed, created, deleted, mode, empty] = files.as_slice() else { panic!("{files:#?}") };
    assert_eq!((renamed.old.as_deref(), renamed.new.as_deref()), (Some("old name"), Some("new name")));
    assert!(renamed.renames && renamed.hunks.len() == 1);
    assert!(created.creates && created.old.is_none() && created.new_mode == Some(0o755));
    assert!(deleted.deletes && deleted.new.is_none() && deleted.old.as_deref() == Some("gone"));
    assert_eq!((mode.old_mode, mode.new_mode), (Some(0o644), Some(0o755)));
    assert!(empty.creates && empty.new.as_deref() == Some("empty"));
    let back = created.clone().reversed();
    assert!(back.deletes && back.old.as_deref() == Some("run.sh"));
}

#[test]
fn wrong_counts_do_not_swallow_the_next_file() {
    let patch =
        "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n-b\n+B\n--- a/y\n+++ b/y\n@@ -1,2 +1,2 @@\n c\n-d\n+D\n";
    let files = parse(patch).unwrap();
    assert_eq!(files.iter().map(|file| file.new.as_deref()).collect::<Vec<_>>(), [Some("x"), Some("y")]);
    assert_eq!(apply("a\nb\n", &files[0], "x").unwrap().text, "a\nB\n");
}

#[test]
fn reading_any_text_as_a_patch_ends() {
    for patch in ["@@", "@@\n\\", "--- \n+++ \n@@", "diff --git \n", "@@ -1 +1 @@\n\n\n\n", "\\\n@@ -1\n+"] {
        let _ = parse(patch);
    }
}

fn diff(old: &str, new: &str, radius: usize) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    TextDiff::configure()
        .newline_terminated(true)
        .diff_slices(&old, &new)
        .unified_diff()
        .context_radius(radius)
        .header("a/f", "b/f")
        .to_string()
}

fn there_and_back(old: &str, new: &str, patch: &str) -> Result<(), TestCaseError> {
    let files = parse(patch).unwrap();
    let there =
        apply(old, &files[0], "f").map_err(|error| TestCaseError::fail(format!("{error}\n{patch}")))?;
    prop_assert_eq!(&there.text, new, "{}", patch);
    let reversed: FilePatch = files[0].clone().reversed();
    let back =
        apply(new, &reversed, "f").map_err(|error| TestCaseError::fail(format!("{error}\n{patch}")))?;
    prop_assert_eq!(&back.text, old, "{}", patch);
    Ok(())
}

/// Lines of few words, so that most of them repeat, with both line endings; the last may lack one.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof!["[abc]{0,2}", "- [ab]", "\\+\\+ [ab]"];
    let end = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
    (prop::collection::vec((line, end), 0..25), any::<bool>()).prop_map(|(lines, open)| {
        let text: String = lines.into_iter().map(|(line, end)| line + end).collect();
        if open { text.trim_end_matches(['\r', '\n']).to_owned() } else { text }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_diff_of_two_texts_makes_one_of_the_other(old in text(), new in text()) {
        prop_assume!(old != new);
        there_and_back(&old, &new, &diff(&old, &new, 3))?;
    }

    #[test]
    fn so_does_a_diff_without_context(old in text(), new in text()) {
        let (old, new) = (old.replace('\r', ""), new.replace('\r', ""));
        prop_assume!(old != new);
        there_and_back(&old, &new, &diff(&old, &new, 0))?;
    }

    #[test]
    fn no_text_breaks_the_reader(patch in "[-+@ \\\\a0-9,\n\r]{0,80}", text in "[ab\n\r]{0,20}") {
        for file in parse(&patch).unwrap_or_default() {
            let _ = apply(&text, &file, "f");
        }
    }
}
