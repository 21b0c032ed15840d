//! `fs_write_text`, `fs_append`, `fs_undo`.

use super::*;

#[tokio::test]
async fn a_file_is_created_replaced_and_brought_back() {
    let desk = FilesFixture::new(&[]);
    let answer =
        desk.call("fs_write_text", json!({"path": "a/b.txt", "text": "one\ntwo", "mkdirs": true})).await;
    assert_eq!((&answer["created"], &answer["line_count"]), (&json!(true), &json!(2)));
    assert_eq!(answer.get("warning"), None);
    let answer = desk.call("fs_write_text", json!({"path": "a/b.txt", "text": "three\n"})).await;
    assert_eq!(answer["warning"], "Overwrote 2 lines; fs_undo can restore it.");
    assert_eq!((&answer["created"], &answer["undo"]), (&json!(false), &json!(true)));
    let answer = desk.call("fs_undo", json!({"path": "a/b.txt"})).await;
    assert_eq!((&answer["undone"], &answer["removed"]), (&json!(true), &json!(false)));
    assert_eq!(desk.text("a/b.txt"), "one\ntwo");
    assert_eq!(answer["hash"], crate::content::content_hash::sha256_hex(b"one\ntwo"));
    let error = desk.fails("fs_write_text", json!({"path": "x/y.txt", "text": "one"})).await;
    assert_eq!(error.kind, Kind::NotFound, "{error}");
    assert_eq!(error.text(), "The directory `x` does not exist. Set mkdirs to create missing directories.");
    let error = desk.fails("fs_write_text", json!({"path": "a/b.txt", "text": "", "create_new": true})).await;
    assert_eq!(error.kind, Kind::Conflict, "{error}");
    assert_eq!(desk.text("a/b.txt"), "one\ntwo");
}

#[tokio::test]
async fn undo_removes_what_was_created_and_restores_what_was_deleted() {
    let desk = FilesFixture::new(&[("kept.txt", b"kept\n")]);
    desk.call("fs_write_text", json!({"path": "new.txt", "text": "new\n"})).await;
    assert_eq!(desk.call("fs_undo", json!({"path": "new.txt"})).await["removed"], true);
    assert!(!desk.exists("new.txt"));
    desk.call("fs_delete", json!({"path": "kept.txt"})).await;
    desk.call("fs_undo", json!({"path": "kept.txt"})).await;
    assert_eq!(desk.text("kept.txt"), "kept\n");
    let answer = desk.call("fs_undo", json!({"path": "kept.txt"})).await;
    assert_eq!(answer["undone"], false, "{answer}");
    desk.call("fs_write_text", json!({"path": "kept.txt", "text": "ours\n"})).await;
    desk.write_file("kept.txt", b"theirs\n");
    assert_eq!(desk.fails("fs_undo", json!({"path": "kept.txt"})).await.kind, Kind::Conflict);
    assert_eq!(desk.text("kept.txt"), "theirs\n");
}

#[tokio::test]
async fn a_hash_guards_every_kind_of_change() {
    let desk = FilesFixture::new(&[("f", b"old\n")]);
    let hash = desk.call("fs_read_text", json!({"path": "f"})).await["hash"].clone();
    desk.write_file("f", b"old\nmore\n");
    let calls = [
        ("fs_write_text", json!({"path": "f", "text": "new", "if_hash": hash})),
        ("fs_write_text", json!({"path": "f", "text": "new", "if_hash": hash, "append": true})),
        ("fs_edit", json!({"path": "f", "edits": [{"old_text": "old", "new_text": "x"}], "if_hash": hash})),
        ("fs_patch", json!({"path": "f", "patch": "@@\n-old\n+x\n", "if_hash": hash})),
    ];
    for (tool, input) in calls {
        assert_eq!(desk.fails(tool, input.clone()).await.kind, Kind::Conflict, "{tool} {input}");
    }
    assert_eq!(desk.text("f"), "old\nmore\n");
    let hash = desk.call("fs_read_text", json!({"path": "f"})).await["hash"].clone();
    let answer = desk.call("fs_write_text", json!({"path": "f", "text": "new", "if_hash": hash})).await;
    assert_eq!(answer.get("warning"), None, "who knows what is replaced needs no warning");
}

#[tokio::test]
async fn marks_and_encodings_are_kept() {
    let desk = FilesFixture::new(&[
        ("bom", b"\xef\xbb\xbfold\n"),
        ("wide", b"\xff\xfeo\0\n\0"),
        ("old", b"gr\xfcn und sch\xf6n\n"),
    ]);
    desk.call("fs_write_text", json!({"path": "bom", "text": "new\n"})).await;
    assert_eq!(desk.bytes("bom"), b"\xef\xbb\xbfnew\n");
    desk.call("fs_write_text", json!({"path": "wide", "text": "n\n"})).await;
    assert_eq!(desk.bytes("wide"), b"\xff\xfen\0\n\0");
    desk.call("fs_append", json!({"path": "wide", "text": "ü"})).await;
    assert_eq!(desk.bytes("wide"), b"\xff\xfen\0\n\0\xfc\0");
    desk.call("fs_append", json!({"path": "old", "text": "rötlich\n"})).await;
    assert_eq!(desk.bytes("old"), b"gr\xfcn und sch\xf6n\nr\xf6tlich\n");
    let far = [b"gr\xfcn und sch\xf6n\n".as_slice(), &b"plain text\n".repeat(1_000)].concat();
    desk.write_file("far", &far);
    desk.call("fs_append", json!({"path": "far", "text": "rötlich\n"})).await;
    assert_eq!(desk.bytes("far"), [far.as_slice(), b"r\xf6tlich\n"].concat());
    let error = desk.fails("fs_write_text", json!({"path": "old", "text": "₿", "encoding": "latin1"})).await;
    assert_eq!(error.kind, Kind::Invalid);
    assert_eq!(desk.bytes("old"), b"gr\xfcn und sch\xf6n\nr\xf6tlich\n");
    desk.call("fs_write_text", json!({"path": "new", "text": "é", "encoding": "latin1"})).await;
    assert_eq!(desk.bytes("new"), b"\xe9");
}

#[tokio::test]
async fn text_is_appended() {
    let desk = FilesFixture::new(&[("f", b"one"), ("crlf", b"one\r\ntwo")]);
    let answer = desk.call("fs_append", json!({"path": "f", "text": "two\n", "newline": true})).await;
    assert_eq!((&answer["bytes_written"], &answer["size_bytes"]), (&json!(5), &json!(8)));
    assert_eq!(desk.text("f"), "one\ntwo\n");
    desk.call("fs_append", json!({"path": "f", "text": "three\n", "newline": true})).await;
    assert_eq!(desk.text("f"), "one\ntwo\nthree\n");
    desk.call("fs_append", json!({"path": "crlf", "text": "three", "newline": true})).await;
    assert_eq!(desk.text("crlf"), "one\r\ntwo\r\nthree");
    let wide: Vec<u8> =
        "\u{feff}a line of text\r\n".repeat(500).encode_utf16().flat_map(u16::to_le_bytes).collect();
    desk.write_file("wide", &wide);
    let answer = desk.call("fs_append", json!({"path": "wide", "text": "x", "newline": true})).await;
    assert_eq!((&answer["bytes_written"], desk.bytes("wide")), (&json!(2), [wide, b"x\0".to_vec()].concat()));
    assert_eq!(desk.call("fs_append", json!({"path": "new", "text": "x"})).await["created"], true);
    let answer = desk.call("fs_write_text", json!({"path": "f", "text": "four", "append": true})).await;
    assert_eq!((&answer["line_count"], answer.get("warning")), (&json!(4), None));
    assert_eq!(desk.text("f"), "one\ntwo\nthree\nfour");
}

#[tokio::test]
async fn a_new_file_behind_a_link_that_leads_nowhere_is_refused() {
    let desk = FilesFixture::new(&[]);
    std::os::unix::fs::symlink("../outside.txt", desk.path("link")).unwrap();
    desk.fails("fs_write_text", json!({"path": "link", "text": "x"})).await;
    assert!(std::fs::symlink_metadata(desk.dir.path().join("outside.txt")).is_err());
}
