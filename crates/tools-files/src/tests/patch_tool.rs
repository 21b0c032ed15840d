//! `fs_patch`.

use super::*;

const TWO_FILE_PATCH: &str =
    "--- a/one\n+++ b/one\n@@ -1 +1 @@\n-1\n+eins\n--- a/sub/two\n+++ b/sub/two\n@@ -1 +1 @@\n-2\n+zwei\n";

#[tokio::test]
async fn a_patch_changes_a_file_whatever_it_calls_it() {
    let desk = FilesFixture::new(&[("f", b"a\nb\nc\n")]);
    let patch = "--- a/another/name\n+++ b/another/name\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n";
    let answer = desk.call("fs_patch", json!({"path": "f", "patch": patch})).await;
    assert_eq!(desk.text("f"), "a\nB\nc\n");
    assert_eq!(answer["message"], "The patch was applied to 1 file.");
    let file = &answer["files"][0];
    assert_eq!(
        (&file["path"], &file["status"], &file["added"]),
        (&json!("f"), &json!("modified"), &json!(1))
    );
    assert_eq!(file["hash"], crate::content::content_hash::sha256_hex(b"a\nB\nc\n"));
    desk.call("fs_patch", json!({"path": "f", "patch": patch, "reverse": true})).await;
    assert_eq!(desk.text("f"), "a\nb\nc\n");
}

#[tokio::test]
async fn a_patch_of_several_files_is_made_whole_or_not_at_all() {
    let desk = FilesFixture::new(&[("one", b"1\n"), ("sub/two", b"2\n"), ("three", b"other\n")]);
    let three = format!("{TWO_FILE_PATCH}--- a/three\n+++ b/three\n@@ -1 +1 @@\n-3\n+drei\n");
    let error = desk.fails("fs_patch", json!({"path": ".", "patch": three})).await;
    assert_eq!(error.kind, Kind::Conflict);
    assert!(error.message.contains("three"), "{error}");
    assert_eq!((desk.text("one").as_str(), desk.text("sub/two").as_str()), ("1\n", "2\n"));
    let answer = desk.call("fs_patch", json!({"path": ".", "patch": TWO_FILE_PATCH, "dry_run": true})).await;
    assert!(answer["diff"].as_str().unwrap().contains("-2\n+zwei\n"));
    assert_eq!(desk.text("one"), "1\n");
    desk.call("fs_patch", json!({"path": ".", "patch": TWO_FILE_PATCH})).await;
    assert_eq!((desk.text("one").as_str(), desk.text("sub/two").as_str()), ("eins\n", "zwei\n"));
    let error = desk.fails("fs_patch", json!({"path": ".", "patch": TWO_FILE_PATCH})).await;
    assert!(error.message.contains("already applied"), "{error}");
    desk.call("fs_patch", json!({"path": ".", "patch": TWO_FILE_PATCH, "reverse": true})).await;
    assert_eq!((desk.text("one").as_str(), desk.text("sub/two").as_str()), ("1\n", "2\n"));
}

#[tokio::test]
async fn files_are_created_deleted_renamed_and_made_executable() {
    let desk = FilesFixture::new(&[
        ("gone", b"x\n"),
        ("old", b"a\nb\n"),
        ("plain", b"p\n"),
        ("move.png", b"\x89PNG\0"),
    ]);
    let patch = "diff --git a/run/me.sh b/run/me.sh\nnew file mode 100755\n--- /dev/null\n+++ b/run/me.sh\n@@ -0,0 +1 @@\n\
                 +#!/bin/sh\ndiff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
                 diff --git a/old b/new\nsimilarity index 50%\nrename from old\nrename to new\n--- a/old\n+++ b/new\n@@ -1,2 +1,2 @@\n \
                 a\n-b\n+B\ndiff --git a/plain b/plain\nold mode 100644\nnew mode 100755\ndiff --git a/move.png b/moved.png\nsimilarity index \
                 100%\nrename from move.png\nrename to moved.png\n";
    desk.set_mode("plain", 0o640);
    let answer = desk.call("fs_patch", json!({"path": ".", "patch": patch})).await;
    let statuses: Vec<&str> =
        answer["files"].as_array().unwrap().iter().map(|file| file["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["created", "deleted", "renamed", "modified", "renamed"]);
    assert_eq!((desk.text("run/me.sh").as_str(), desk.mode("run/me.sh") & 0o100), ("#!/bin/sh\n", 0o100));
    assert!(!desk.exists("gone") && !desk.exists("old") && !desk.exists("move.png"));
    assert_eq!((desk.text("new").as_str(), desk.mode("plain")), ("a\nB\n", 0o750));
    assert_eq!(desk.bytes("moved.png"), b"\x89PNG\0");
    assert!(answer["warning"].as_str().unwrap().contains("Deleted `gone`"));
    desk.call("fs_patch", json!({"path": ".", "patch": patch, "reverse": true})).await;
    assert_eq!(
        (desk.text("gone").as_str(), desk.text("old").as_str(), desk.mode("plain")),
        ("x\n", "a\nb\n", 0o640)
    );
    assert!(!desk.exists("run/me.sh"));
}

#[tokio::test]
async fn what_a_patch_may_not_do() {
    let desk = FilesFixture::new(&[("f", b"a\n"), ("exists", b"mine\n"), ("sub/g", b"g\n")]);
    let new = |name: &str| format!("--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n");
    let rows = [
        (".", new("exists"), Kind::Conflict),
        ("sub", new("../out"), Kind::Denied),
        (".", new("/etc/out"), Kind::Denied),
        ("f", TWO_FILE_PATCH.to_owned(), Kind::Invalid),
        (".", "@@ -1 +1 @@\n-a\n+b\n".to_owned(), Kind::Invalid),
        ("missing", "@@ -1 +1 @@\n-a\n+b\n".to_owned(), Kind::NotFound),
        (".", "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n".to_owned(), Kind::Conflict),
        (".", "--- a/exists\n+++ /dev/null\n@@ -0,0 +0,0 @@\n \n".to_owned(), Kind::Conflict),
        (".", "diff --git a/f b/exists\nrename from f\nrename to exists\n".to_owned(), Kind::Conflict),
    ];
    for (path, patch, kind) in rows {
        let error = desk.fails("fs_patch", json!({"path": path, "patch": patch})).await;
        assert_eq!(error.kind, kind, "{patch}: {error}");
    }
    assert_eq!((desk.text("f").as_str(), desk.text("exists").as_str()), ("a\n", "mine\n"));
    assert!(!desk.exists("out"));
}

#[tokio::test]
async fn the_bytes_around_a_patch_survive() {
    let hunk = "@@ -1,2 +1,2 @@\n a\n-b\n+c\n";
    let rows: [(&[u8], &[u8]); 4] = [
        (b"a\r\nb\r\n", b"a\r\nc\r\n"),
        (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\nc\n"),
        (b"a\nb", b"a\nc"),
        (b"a\nb\n\xfc und \xf6 gr\xfcn\n", b"a\nc\n\xfc und \xf6 gr\xfcn\n"),
    ];
    for (before, after) in rows {
        let desk = FilesFixture::new(&[("f", before)]);
        desk.set_mode("f", 0o755);
        desk.call("fs_patch", json!({"path": "f", "patch": hunk})).await;
        assert_eq!((desk.bytes("f").as_slice(), desk.mode("f")), (after, 0o755));
    }
}

#[tokio::test]
async fn the_form_with_anchors_is_understood() {
    let desk = FilesFixture::new(&[
        ("a.py", b"def one():\n    pass\n\ndef two():\n    pass\n"),
        ("gone", b"x\ny\n"),
        ("old", b"o\n"),
    ]);
    let patch = "*** Begin Patch\n*** Update File: a.py\n@@ def two():\n-    pass\n+    return 2\n*** Add File: new/b.txt\n+b\n\
                 *** Delete File: gone\n*** Update File: old\n*** Move to: moved\n@@\n-o\n+O\n*** End Patch\n";
    desk.call("fs_patch", json!({"path": ".", "patch": patch})).await;
    assert_eq!(desk.text("a.py"), "def one():\n    pass\n\ndef two():\n    return 2\n");
    assert_eq!((desk.text("new/b.txt").as_str(), desk.text("moved").as_str()), ("b\n", "O\n"));
    assert!(!desk.exists("gone") && !desk.exists("old"));
    let error = desk.fails("fs_patch", json!({"path": ".", "patch": patch, "reverse": true})).await;
    assert_eq!(error.kind, Kind::Invalid);
    let nested = "class A:\n    def f():\n        pass\nclass B:\n    def f():\n        pass\n";
    desk.write_file("c.py", nested.as_bytes());
    let update = |body: &str| format!("*** Begin Patch\n*** Update File: c.py\n{body}*** End Patch");
    let patch = update("@@ class B:\n@@     def f():\n-        pass\n+        return 1\n");
    desk.call("fs_patch", json!({"path": ".", "patch": patch})).await;
    let nested =
        nested.replace("class B:\n    def f():\n        pass", "class B:\n    def f():\n        return 1");
    assert_eq!(desk.text("c.py"), nested);
    desk.call("fs_patch", json!({"path": ".", "patch": update("@@\n+# end\n")})).await;
    assert_eq!(desk.text("c.py"), nested + "# end\n");
    let patch = update("@@ class C:\n-        pass\n+        return 1\n");
    let error = desk.fails("fs_patch", json!({"path": ".", "patch": patch})).await;
    assert!(error.message.contains("\"class C:\", which is not in the file"), "{error}");
}

#[tokio::test]
async fn a_file_that_a_patch_touches_twice_is_changed_twice() {
    let desk = FilesFixture::new(&[("f", b"a\nb\n")]);
    let one = |old: &str, new: &str| format!("--- a/f\n+++ b/f\n@@\n-{old}\n+{new}\n");
    let patch = one("a", "A") + &one("b", "B");
    desk.call("fs_patch", json!({"path": ".", "patch": patch})).await;
    assert_eq!(desk.text("f"), "A\nB\n");
}

#[tokio::test]
async fn the_form_with_anchors_replaces_and_ends_lines() {
    let desk =
        FilesFixture::new(&[("a", b"old\n"), ("from", b"from\n"), ("to", b"to\n"), ("open", b"no end")]);
    let patch = " *** Begin Patch\n*** Add File: a\n+new\n  *** Update File: from\n*** Move to: to\n@@\n-from\n+FROM\n*** Update File: \
                 open\n@@\n-no end\n+end\n *** End Patch ";
    let answer = desk.call("fs_patch", json!({"path": ".", "patch": patch})).await;
    assert_eq!(
        (desk.text("a").as_str(), desk.text("to").as_str(), desk.text("open").as_str()),
        ("new\n", "FROM\n", "end\n")
    );
    assert_eq!(answer["warning"], "Overwrote `a`, `to`.");
    assert!(!desk.exists("from"));
}

#[tokio::test]
async fn of_two_names_the_plainer_one_that_exists_is_meant() {
    let hunk = "@@ -1 +1 @@\n-old\n+new\n";
    for (names, files, wanted) in [
        ("--- f.orig\t2026-01-01\n+++ f\t2026-01-02\n", vec!["f", "f.orig"], "f"),
        ("--- f\n+++ f.new\n", vec!["f", "f.new"], "f"),
        ("--- before/f\n+++ f\n", vec!["f"], "f"),
        ("--- f\n+++ after/f\n", vec!["after/f"], "after/f"),
        ("--- x/f\n+++ y/f\n", vec!["x/f", "y/f"], "x/f"),
    ] {
        let content: Vec<(&str, &[u8])> = files.iter().map(|name| (*name, b"old\n".as_slice())).collect();
        let desk = FilesFixture::new(&content);
        desk.call("fs_patch", json!({"path": ".", "patch": format!("{names}{hunk}")})).await;
        for name in files {
            assert_eq!(desk.text(name), if name == wanted { "new\n" } else { "old\n" }, "{names} {name}");
        }
    }
}

#[tokio::test]
async fn line_numbers_past_all_files_are_no_harm() {
    let desk = FilesFixture::new(&[("f", b"a\nb\n")]);
    let most = usize::MAX;
    let patch = format!("@@ -{most},1 +{most},1 @@\n-b\n+B\n");
    desk.call("fs_patch", json!({"path": "f", "patch": patch})).await;
    assert_eq!(desk.text("f"), "a\nB\n");
    let error = desk.fails("fs_patch", json!({"path": "f", "patch": patch.replace("-b", "-q")})).await;
    assert_eq!(error.kind, Kind::Conflict);
    let error =
        desk.fails("fs_patch", json!({"path": "f", "patch": format!("@@ -{most},0 +1 @@\n+x\n")})).await;
    assert_eq!(error.kind, Kind::Conflict);
}

#[tokio::test]
async fn undoing_a_renamed_file_brings_the_old_name_back() {
    let patch = "*** Begin Patch\n*** Update File: p/m.py\n*** Move to: p/moved.py\n@@\n-one\n+two\n*** Update File: a\n@@\n-a\n+A\n\
                 *** Delete File: b\n*** End Patch\n";
    for by in ["p/moved.py", "p/m.py"] {
        let desk = FilesFixture::new(&[("p/m.py", b"one\n"), ("a", b"a\n"), ("b", b"b\n")]);
        let answer = desk.call("fs_patch", json!({"path": ".", "patch": patch})).await;
        assert_eq!(answer["message"], "The patch was applied to 3 files.");
        let answer = desk.call("fs_undo", json!({"path": by})).await;
        assert_eq!(answer["undone"], true, "{answer}");
        assert!(answer["message"].as_str().unwrap().contains("Restored p/m.py"), "{answer}");
        assert_eq!((desk.text("p/m.py").as_str(), desk.exists("p/moved.py")), ("one\n", false), "{by}");
        assert_eq!((desk.text("a").as_str(), desk.exists("b")), ("A\n", false), "{by}");
    }
}
