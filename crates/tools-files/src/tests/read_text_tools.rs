//! `fs_read_text`, `fs_read_many`, `fs_read_bytes`, `fs_stat`.

use super::*;
use std::io::{Seek, SeekFrom, Write as _};

#[tokio::test]
async fn a_text_is_read_whole_or_by_lines() {
    let desk = FilesFixture::new(&[("f", b"one\ntwo\nthree\n")]);
    let rows = [
        (json!({}), "one\ntwo\nthree\n", 1, 3),
        (json!({"start_line": 2}), "two\nthree\n", 2, 3),
        (json!({"start_line": 2, "end_line": 2}), "two\n", 2, 2),
        (json!({"end_line": 99}), "one\ntwo\nthree\n", 1, 3),
        (json!({"head": 1}), "one\n", 1, 1),
        (json!({"tail": 2}), "two\nthree\n", 2, 3),
        (json!({"tail": 1, "line_numbers": true}), "3\tthree\n", 3, 3),
    ];
    for (mut input, content, first, last) in rows {
        input["path"] = json!("f");
        let answer = desk.call("fs_read_text", input.clone()).await;
        assert_eq!(answer["content"], content, "{input}");
        assert_eq!((&answer["start_line"], &answer["end_line"]), (&json!(first), &json!(last)), "{input}");
        assert_eq!(answer["line_count"], 3, "{input}");
        assert_eq!(answer["line_count_exact"], true);
        assert_eq!(answer["size_bytes"], 14);
        assert_eq!(answer["truncated"], false);
        assert_eq!(answer["encoding"], "utf-8");
        assert_eq!(answer["hash"], crate::content::content_hash::sha256_hex(b"one\ntwo\nthree\n"));
    }
    let error = desk.fails("fs_read_text", json!({"path": "f", "start_line": 4})).await;
    assert_eq!(error.message, "The file has 3 lines; line 4 is past its end.");
}

#[tokio::test]
async fn an_empty_file_has_no_lines() {
    let desk = FilesFixture::new(&[("empty", b"")]);
    let answer = desk.call("fs_read_text", json!({"path": "empty"})).await;
    assert_eq!((&answer["content"], &answer["line_count"]), (&json!(""), &json!(0)));
    assert_eq!(answer.get("start_line"), None);
    assert_eq!(desk.call("fs_read_text", json!({"path": "empty", "tail": 3})).await["content"], "");
}

#[tokio::test]
async fn what_is_cut_names_the_line_to_go_on_from() {
    let text: String = (1..=100).map(|line| format!("line {line}\n")).collect();
    let desk = FilesFixture::new(&[("f", text.as_bytes()), ("long", "ä".repeat(100).as_bytes())]);
    let (mut all, mut next) = (String::new(), Some(1));
    while let Some(line) = next {
        let input = json!({"path": "f", "start_line": line, "max_bytes": 100});
        let answer = desk.call("fs_read_text", input).await;
        let content = answer["content"].as_str().unwrap();
        assert!(content.len() <= 100 && content.ends_with('\n'));
        all.push_str(content);
        next = answer["next"].as_u64();
        assert_eq!(answer["truncated"], next.is_some());
    }
    assert_eq!(all, text);
    let answer = desk.call("fs_read_text", json!({"path": "long", "max_bytes": 5})).await;
    assert_eq!(answer["content"], "ää");
    assert_eq!(answer["truncated"], true);
    assert!(answer["notice"].as_str().unwrap().contains("start_line 1 and start_byte 4"));
    assert_eq!((&answer["next"], &answer["next_byte"]), (&json!(1), &json!(4)));
}

#[tokio::test]
async fn encodings_are_found_and_named() {
    let wide: Vec<u8> = "\u{feff}grün\nrot\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let desk = FilesFixture::new(&[
        ("wide", &wide),
        ("old", b"gr\xfcn und sch\xf6n\n"),
        ("bom", b"\xef\xbb\xbfa\n"),
    ]);
    let rows = [
        (json!({"path": "wide"}), "grün\nrot\n", "utf-16le"),
        (json!({"path": "wide", "start_line": 2}), "rot\n", "utf-16le"),
        (json!({"path": "old"}), "grün und schön\n", "windows-1252"),
        (json!({"path": "old", "encoding": "iso-8859-2"}), "grün und schön\n", "iso-8859-2"),
        (json!({"path": "bom"}), "a\n", "utf-8"),
    ];
    for (input, content, encoding) in rows {
        let answer = desk.call("fs_read_text", input.clone()).await;
        assert_eq!((&answer["content"], &answer["encoding"]), (&json!(content), &json!(encoding)), "{input}");
    }
    let error = desk.fails("fs_read_text", json!({"path": "old", "encoding": "klingon"})).await;
    assert_eq!(error.kind, Kind::Invalid);
    assert!(error.hint.unwrap().contains("shift_jis"));
}

#[tokio::test]
async fn binary_files_are_refused_by_name() {
    let desk = FilesFixture::new(&[("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), ("b", b"a\0b\x01")]);
    let error = desk.fails("fs_read_text", json!({"path": "a.png"})).await;
    assert_eq!(error.message, "`a.png` is not text but a PNG image.");
    assert_eq!(error.hint.unwrap(), "Call fs_read_media {\"path\": \"a.png\"} to see it.");
    assert!(desk.fails("fs_read_text", json!({"path": "b"})).await.message.contains("binary data"));
    assert!(
        desk.fails("fs_edit", json!({"path": "b", "edits": [{"old_text": "a", "new_text": "c"}]}))
            .await
            .message
            .contains("binary data")
    );
}

#[tokio::test]
async fn head_and_tail_of_a_huge_file_cost_nothing() {
    let desk = FilesFixture::new(&[]);
    let mut file = std::fs::File::create(desk.path("huge.log")).unwrap();
    file.write_all("first\nsecond\n".repeat(10_000).as_bytes()).unwrap();
    file.seek(SeekFrom::Start(10 << 30)).unwrap();
    file.write_all(b"\nbefore last\nlast\n").unwrap();
    let began = std::time::Instant::now();
    let head = desk.call("fs_read_text", json!({"path": "huge.log", "head": 2})).await;
    assert_eq!(head["content"], "first\nsecond\n");
    assert_eq!(head["line_count_exact"], false);
    assert_eq!(head.get("hash"), None);
    let tail = desk.call("fs_read_text", json!({"path": "huge.log", "tail": 2})).await;
    assert_eq!(tail["content"], "before last\nlast\n");
    let bytes = desk.call("fs_read_bytes", json!({"path": "huge.log", "max_bytes": 5})).await;
    assert_eq!(bytes["next"], 5);
    assert!(began.elapsed() < std::time::Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test]
async fn many_files_come_in_order_and_one_failure_spoils_nothing() {
    let desk = FilesFixture::new(&[
        ("a", b"aaa\n"),
        ("b.png", b"\x89PNG\r\n\x1a\n\0"),
        ("c", "c\n".repeat(1000).as_bytes()),
    ]);
    let input = json!({"paths": ["c", "missing", "b.png", "a"], "max_bytes": 100});
    let answer = desk.call("fs_read_many", input).await;
    let files = answer["files"].as_array().unwrap();
    let paths: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["c", "missing", "b.png", "a"]);
    assert_eq!(files[3]["content"], "aaa\n");
    assert_eq!(files[0]["truncated"], true);
    assert!(files[0]["content"].as_str().unwrap().len() > 70);
    assert!(files[0]["next"].as_u64().unwrap() > 30);
    assert!(files[1]["error"].as_str().unwrap().contains("does not exist"));
    assert!(files[2]["error"].as_str().unwrap().contains("PNG"));
    assert_eq!(files[1].get("content"), None);
    let many: Vec<String> = (0..101).map(|n| n.to_string()).collect();
    assert_eq!(desk.fails("fs_read_many", json!({"paths": many})).await.kind, Kind::Invalid);
    assert_eq!(desk.fails("fs_read_many", json!({"paths": []})).await.kind, Kind::Invalid);
}

#[tokio::test]
async fn bytes_are_read_from_an_offset() {
    let desk = FilesFixture::new(&[("f", b"0123456789")]);
    let answer = desk.call("fs_read_bytes", json!({"path": "f", "offset": 8, "max_bytes": 5})).await;
    assert_eq!(answer["base64"], "ODk=");
    assert_eq!((&answer["truncated"], answer.get("next")), (&json!(false), None));
    assert_eq!(desk.fails("fs_read_bytes", json!({"path": "f", "offset": 11})).await.kind, Kind::Invalid);
}

#[tokio::test]
async fn a_path_is_described_and_so_is_a_link() {
    let desk = FilesFixture::new(&[("f", b"abc")]);
    desk.set_mode("f", 0o640);
    std::os::unix::fs::symlink("f", desk.path("link")).unwrap();
    let answer = desk.call("fs_stat", json!({"path": "f"})).await;
    assert_eq!((&answer["type"], &answer["size_bytes"]), (&json!("file"), &json!(3)));
    assert_eq!((&answer["permissions"], &answer["mode"]), (&json!("rw-r-----"), &json!("0640")));
    assert!(answer["modified"].as_str().unwrap().ends_with('Z'));
    let answer = desk.call("fs_stat", json!({"path": "link"})).await;
    assert_eq!((&answer["type"], &answer["target"]), (&json!("symlink"), &json!("f")));
    assert_eq!(answer["target_type"], "file");
    assert_eq!(desk.call("fs_stat", json!({"path": "."})).await["type"], "directory");
    assert_eq!(desk.fails("fs_stat", json!({"path": "missing"})).await.kind, Kind::NotFound);
}
