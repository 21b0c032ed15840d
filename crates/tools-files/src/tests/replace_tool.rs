//! `fs_replace` on real files.

use super::FilesFixture;
use octo_toolkit::Kind;
use serde_json::{Value, json};

#[tokio::test]
async fn a_rename_across_many_files_is_one_short_call_and_can_be_taken_back() {
    let desk = FilesFixture::new(&[]);
    for n in 0..34 {
        let text = format!("use old_name;\nfn old_name_{n}() {{ old_name(old_name) }}\n");
        desk.write_file(&format!("pkg/part{}/file{n}.rs", n % 4), text.as_bytes());
    }
    let input = json!({"pattern": "old_name", "replacement": "new_name", "whole_word": true, "glob": "*.rs"});
    let mut dry = input.clone();
    dry["dry_run"] = json!(true);
    let seen = desk.call("fs_replace", dry).await;
    assert_eq!(seen["message"], "Would replace 102 places in 34 files.");
    assert_eq!(seen["preview"][0], "pkg/part0/file0.rs:1: use old_name; → use new_name;");
    assert!(desk.text("pkg/part0/file0.rs").starts_with("use old_name"));

    let answer = desk.call("fs_replace", input).await;
    assert_eq!((&answer["replacements"], &answer["undo"]), (&json!(102), &json!(true)));
    assert_eq!(answer["files"]["pkg/part3"].as_str().unwrap().split(", ").count(), 8);
    // About four bytes make a token.
    assert!(answer.to_string().len() < 1_000, "{}", answer.to_string().len());
    assert_eq!(desk.text("pkg/part1/file1.rs"), "use new_name;\nfn old_name_1() { new_name(new_name) }\n");

    let undone = desk.call("fs_undo", json!({"path": "pkg/part1/file1.rs"})).await;
    assert_eq!(undone["undone"], true);
    assert_eq!(desk.text("pkg/part1/file1.rs"), "use old_name;\nfn old_name_1() { old_name(old_name) }\n");
}

#[tokio::test]
async fn patterns_words_groups_and_line_ends() {
    for (text, input, wanted) in [
        ("a.b a+b", json!({"pattern": "a.b", "replacement": "x"}), "x a+b"),
        ("a.b a+b", json!({"pattern": "a.b", "replacement": "x", "regex": true}), "x x"),
        (
            "cat concat cat_",
            json!({"pattern": "cat", "replacement": "dog", "whole_word": true}),
            "dog concat cat_",
        ),
        ("$x $x2", json!({"pattern": "$x", "replacement": "$y", "whole_word": true}), "$y $x2"),
        ("a=1 b=2", json!({"pattern": "(\\w)=(\\d)", "replacement": "$2=${1}!", "regex": true}), "1=a! 2=b!"),
        ("Cat", json!({"pattern": "cat", "replacement": "Dog", "case_sensitive": false}), "Dog"),
        ("a\r\nb\r\nc\r\n", json!({"pattern": "a\nb", "replacement": "x\ny"}), "x\r\ny\r\nc\r\n"),
        ("a\r\nb\r\n", json!({"pattern": "^b$", "replacement": "c", "regex": true}), "a\r\nc\r\n"),
        ("grün", json!({"pattern": "ü", "replacement": "ue"}), "gruen"),
        ("one", json!({"pattern": "one", "replacement": "$1"}), "$1"),
    ] {
        let desk = FilesFixture::new(&[("f.txt", text.as_bytes())]);
        desk.call("fs_replace", input.clone()).await;
        assert_eq!(desk.text("f.txt"), wanted, "{input}");
    }
}

#[tokio::test]
async fn what_must_not_change_is_skipped_and_named() {
    let files: [(&str, &[u8]); 6] = [
        ("a.txt", b"key"),
        (".hidden", b"key"),
        ("server.pem", b"key"),
        ("data.bin", b"key\0\x01\x02"),
        (".gitignore", b"ignored.txt\n"),
        ("ignored.txt", b"key"),
    ];
    let desk = FilesFixture::protecting(&files, vec!["**/*.pem".to_owned()]);
    std::fs::create_dir(desk.path(".git")).unwrap();
    std::fs::write(desk.dir.path().join("outside.txt"), "key").unwrap();
    std::os::unix::fs::symlink("../outside.txt", desk.path("link.txt")).unwrap();
    let input = json!({"pattern": "key", "replacement": "lock"});
    let answer = desk.call("fs_replace", input.clone()).await;
    assert_eq!(answer["files"], json!({".": "a.txt 1"}));
    assert_eq!(answer["notes"], json!(["Skipped: `server.pem` is protected by `**/*.pem`."]));
    let error =
        desk.fails("fs_replace", json!({"pattern": "key", "replacement": "x", "path": "server.pem"})).await;
    assert_eq!(error.kind, Kind::Denied);
    for kept in [".hidden", "server.pem", "ignored.txt"] {
        assert_eq!(desk.text(kept), "key", "{kept}");
    }
    assert_eq!(std::fs::read_to_string(desk.dir.path().join("outside.txt")).unwrap(), "key");
    let again = desk.call("fs_replace", json!({"pattern": "lock", "replacement": "key"})).await;
    assert_eq!(again["replacements"], 1);
    for path in ["link.txt", "../outside.txt", "/etc/passwd"] {
        let mut input = input.clone();
        input["path"] = json!(path);
        let error = desk.fails("fs_replace", input).await;
        assert!(matches!(error.kind, Kind::Denied | Kind::NotFound | Kind::Invalid), "{path}: {error}");
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_meant_is_refused_and_changes_nothing() {
    let desk = FilesFixture::new(&[("a.txt", "x".repeat(1 << 20).as_bytes())]);
    for (input, wanted) in [
        (json!({"pattern": "", "replacement": "y"}), "The pattern is empty."),
        (
            json!({"pattern": "(", "replacement": "y", "regex": true}),
            "The pattern is not a valid regular expression: unclosed group.",
        ),
        (json!({"pattern": "y*", "replacement": "z", "regex": true}), "The pattern matches empty text."),
        (json!({"pattern": "x", "replacement": "y".repeat(64)}), "`a.txt` would grow beyond 16 MiB."),
        (json!({"pattern": "x", "replacement": "y", "path": "missing"}), "There is no `missing`."),
    ] {
        let error = desk.fails("fs_replace", input).await;
        assert!(error.hint.is_some(), "{error}");
        assert!(error.message == wanted || wanted.contains("missing"), "{error}");
    }
    assert!(desk.text("a.txt").bytes().all(|byte| byte == b'x'));

    let nothing = desk.call("fs_replace", json!({"pattern": "absent", "replacement": "y"})).await;
    assert_eq!((&nothing["replacements"], &nothing["undo"]), (&json!(0), &Value::Bool(false)));
    for n in 0..151 {
        desk.write_file(&format!("many/{n}.txt"), b"word");
    }
    let error = desk.fails("fs_replace", json!({"pattern": "word", "replacement": "term"})).await;
    assert_eq!((error.kind, &*error.message), (Kind::TooLarge, "151 files contain the pattern."));
    desk.call("fs_replace", json!({"pattern": "word", "replacement": "term", "glob": "*[0-4].txt"})).await;
    assert_eq!((desk.text("many/4.txt"), desk.text("many/5.txt")), ("term".into(), "word".into()));
}

#[tokio::test]
async fn a_replacement_does_not_take_the_memory_of_the_hub() {
    let desk = FilesFixture::new(&[("big.txt", "x".repeat(4 << 20).as_bytes())]);
    for (pattern, replacement) in [("(?s).+", "$0".repeat(3_000)), ("x", "y".repeat(100_000))] {
        let input = json!({"pattern": pattern, "replacement": replacement, "regex": true, "dry_run": true});
        let error = desk.fails("fs_replace", input).await;
        assert_eq!(error.kind, Kind::TooLarge, "{error}");
    }
}
