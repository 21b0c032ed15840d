//! `fs_edit`.

use super::*;

fn edit(old: &str, new: &str) -> Value {
    json!({"old_text": old, "new_text": new})
}

#[tokio::test]
async fn an_edit_changes_its_place_and_shows_it() {
    let desk = FilesFixture::new(&[("f", b"one\ntwo\nthree\n")]);
    desk.set_mode("f", 0o755);
    let answer = desk.call("fs_edit", json!({"path": "f", "edits": [edit("two", "2")]})).await;
    assert_eq!(answer["diff"], "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    assert_eq!((&answer["replacements"], &answer["undo"]), (&json!(1), &json!(true)));
    assert_eq!(desk.text("f"), "one\n2\nthree\n");
    assert_eq!(desk.mode("f"), 0o755);
    assert_eq!(answer["hash"], crate::content::content_hash::sha256_hex(b"one\n2\nthree\n"));
    desk.call("fs_undo", json!({"path": "f"})).await;
    assert_eq!(desk.text("f"), "one\ntwo\nthree\n");
}

#[tokio::test]
async fn a_preview_writes_nothing() {
    let desk = FilesFixture::new(&[("f", b"one\n")]);
    let answer =
        desk.call("fs_edit", json!({"path": "f", "edits": [edit("one", "1")], "dry_run": true})).await;
    assert!(answer["diff"].as_str().unwrap().contains("+1\n"));
    assert_eq!((&answer["dry_run"], &answer["undo"]), (&json!(true), &json!(false)));
    assert_eq!(answer["hash"], crate::content::content_hash::sha256_hex(b"one\n"));
    assert_eq!(desk.text("f"), "one\n");
}

#[tokio::test]
async fn nothing_is_written_unless_every_edit_fits() {
    let desk = FilesFixture::new(&[("f", b"one\ntwo\ntwo\n")]);
    let rows = [
        (json!([edit("one", "1"), edit("two", "2")]), Kind::Conflict, "lines 2, 3"),
        (json!([edit("one", "1"), edit("missing words", "2")]), Kind::NotFound, "Edit 2 of 2"),
        (json!([edit("", "1")]), Kind::Invalid, "fs_write_text"),
        (json!([edit("one", "one")]), Kind::Invalid, "the same"),
        (json!([]), Kind::Invalid, "No edits"),
        (json!([edit("gone", "one")]), Kind::NotFound, "already applied"),
    ];
    for (edits, kind, wanted) in rows {
        let error = desk.fails("fs_edit", json!({"path": "f", "edits": edits})).await;
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.text().contains(wanted), "{wanted}: {error}");
        assert_eq!(desk.text("f"), "one\ntwo\ntwo\n");
    }
}

#[tokio::test]
async fn what_makes_the_file_the_file_survives() {
    let rows: [(&[u8], &str, &str, &[u8]); 7] = [
        (b"a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", "c", "C", b"a\r\nb\nC\r\n"),
        (b"a\nb", "b", "c", b"a\nc"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        (b"\xff\xfea\0\n\0", "a", "\u{fc}", b"\xff\xfe\xfc\0\n\0"),
        (b"gr\xfcn und sch\xf6n\n", "und", "\u{fc}", b"gr\xfcn \xfc sch\xf6n\n"),
        (b"print(\"a\\nb\")\n", "a\\nb", "c\\nd", b"print(\"c\\nd\")\n"),
    ];
    for (before, old, new, after) in rows {
        let desk = FilesFixture::new(&[("f", before)]);
        desk.call("fs_edit", json!({"path": "f", "edits": [edit(old, new)]})).await;
        assert_eq!(desk.bytes("f"), after, "{before:?}");
    }
}

#[tokio::test]
async fn a_whitespace_edit_everywhere_ends() {
    let desk = FilesFixture::new(&[("f", b"a  b\n\n\n")]);
    let edits = json!([{"old_text": " ", "new_text": "  ", "replace_all": true}, {"old_text": "\n", "new_text": "\n\n", "replace_all": true}]);
    let answer = desk.call("fs_edit", json!({"path": "f", "edits": edits})).await;
    assert_eq!(answer["replacements"], 5);
    assert_eq!(desk.text("f"), "a    b\n\n\n\n\n\n");
}

#[tokio::test]
async fn the_count_can_be_demanded() {
    let desk = FilesFixture::new(&[("f", b"x x x\n")]);
    let edits = |count: u64| json!([{"old_text": "x", "new_text": "y", "expected_replacements": count}]);
    let error = desk.fails("fs_edit", json!({"path": "f", "edits": edits(2)})).await;
    assert!(error.hint.unwrap().contains("expected_replacements to 3"));
    desk.call("fs_edit", json!({"path": "f", "edits": edits(3)})).await;
    assert_eq!(desk.text("f"), "y y y\n");
}
