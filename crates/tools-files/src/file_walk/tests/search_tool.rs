//! `fs_search`.

use super::FindFixture;
use octo_toolkit::Kind;
use serde_json::{Value, json};

/// `path:line:column text`, or what there is of it.
fn format_matches(answer: &Value) -> Vec<String> {
    let matches = answer["matches"].as_array().unwrap().iter();
    let one = |hit: &Value| {
        let number = |name: &str| hit.get(name).map(|at| format!(":{at}")).unwrap_or_default();
        let text = hit.get("text").map(|text| format!(" {}", text.as_str().unwrap())).unwrap_or_default();
        format!(
            "{}{}{}{}{text}",
            hit["path"].as_str().unwrap(),
            number("line"),
            number("column"),
            number("count")
        )
    };
    matches.map(one).collect()
}

fn sample() -> FindFixture {
    FindFixture::new(&[
        ("a.rs", "fn one() {}\nfn two() {}\n"),
        ("src/b.rs", "// fn\n\n  fn Three(a.b) {}\n"),
        ("src/c.txt", "fn in text\n"),
        ("src/deep/d.rs", "fn four() {}"),
        (".hidden/e.rs", "fn hidden() {}\n"),
        ("out/f.rs", "fn ignored() {}\n"),
        (".gitignore", "out/\n"),
        ("win.txt", "first\r\nend here\r\n"),
    ])
}

#[tokio::test]
async fn searches_find_what_they_should() {
    let kit = sample();
    let all = [
        "a.rs:1:1 fn one() {}",
        "a.rs:2:1 fn two() {}",
        "src/b.rs:3:3   fn Three(a.b) {}",
        "src/deep/d.rs:1:1 fn four() {}",
    ];
    let table: &[(Value, &[&str])] = &[
        (json!({"pattern": r"fn \w+\("}), &all),
        (json!({"pattern": r"fn \w+\(", "glob": "*.rs"}), &all),
        (json!({"pattern": r"fn \w+\(", "glob": "src/**/*.rs"}), &all[2..]),
        (json!({"pattern": r"fn \w+\(", "glob": "!src/**"}), &all[..2]),
        (json!({"pattern": r"fn \w+\(", "path": "src/deep"}), &all[3..]),
        (json!({"pattern": r"fn \w+\(", "path": "src/b.rs"}), &all[2..3]),
        (json!({"pattern": r"fn \w+\(", "path": "src/b.rs", "glob": "*.rs"}), &all[2..3]),
        (json!({"pattern": r"fn \w+\(", "path": "src/b.rs", "glob": "*.txt"}), &[]),
        (json!({"pattern": "FN t", "case_sensitive": false}), &[all[1], all[2]]),
        (json!({"pattern": "FN t"}), &[]),
        (json!({"pattern": "(a.b)", "fixed": true}), &["src/b.rs:3:11   fn Three(a.b) {}"]),
        (json!({"pattern": "hidden"}), &[]),
        (json!({"pattern": "hidden", "hidden": true}), &[".hidden/e.rs:1:4 fn hidden() {}"]),
        (json!({"pattern": "hidden", "glob": ".hidden/**"}), &[".hidden/e.rs:1:4 fn hidden() {}"]),
        (json!({"pattern": "ignored", "ignored": true}), &["out/f.rs:1:4 fn ignored() {}"]),
        (json!({"pattern": "here$"}), &["win.txt:2:5 end here"]),
        (json!({"pattern": "^fn", "show": "files"}), &["a.rs", "src/c.txt", "src/deep/d.rs"]),
        (json!({"pattern": "^fn", "show": "counts"}), &["a.rs:2", "src/c.txt:1", "src/deep/d.rs:1"]),
    ];
    for (input, wanted) in table {
        let answer = kit.call("fs_search", input.clone()).await;
        assert_eq!(format_matches(&answer), *wanted, "{input}");
        assert_eq!(answer["total_matches"], wanted.len(), "{input}");
        assert_eq!(
            (&answer["truncated"], &answer["total_is_exact"]),
            (&json!(false), &json!(true)),
            "{input}"
        );
    }
}

#[tokio::test]
async fn an_absolute_path_is_answered_with_absolute_paths() {
    let kit = sample();
    let path = kit.path().join("src").to_str().unwrap().to_owned();
    let answer = kit.call("fs_search", json!({"pattern": "four", "path": path})).await;
    assert_eq!(format_matches(&answer), [format!("{path}/deep/d.rs:1:4 fn four() {{}}")]);
}

#[tokio::test]
async fn lines_around_a_match_are_given_with_it() {
    let kit = FindFixture::new(&[("a", "1\n2 x\n3\n4 x\n5\n6\n7\n8 x")]);
    let answer = kit.call("fs_search", json!({"pattern": "x", "context_lines": 2})).await;
    let around: Vec<(&Value, &Value)> =
        answer["matches"].as_array().unwrap().iter().map(|hit| (&hit["before"], &hit["after"])).collect();
    assert_eq!(
        around,
        [
            (&json!(["1"]), &json!(["3", "4 x"])),
            (&json!(["2 x", "3"]), &json!(["5", "6"])),
            (&json!(["6", "7"]), &Value::Null),
        ]
    );
    let answer = kit.call("fs_search", json!({"pattern": "x", "context_lines": 99999})).await;
    assert_eq!(answer["matches"][1]["before"], json!(["1", "2 x", "3"]));
}

#[tokio::test]
async fn a_cut_is_exact_and_always_the_same() {
    let kit = FindFixture::new(&[]);
    for file in 0..120 {
        kit.write_file(&format!("d{}/f{file:03}", file % 7), b"x\ny\nx\nx\n");
    }
    let all = format_matches(&kit.call("fs_search", json!({"pattern": "x", "max_results": 360})).await);
    assert_eq!(all.len(), 360);
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "by path and line");
    for (most, truncated) in
        [(0, true), (1, true), (100, true), (359, true), (360, false), (361, false), (u64::MAX, false)]
    {
        for _ in 0..3 {
            let answer = kit.call("fs_search", json!({"pattern": "x", "max_results": most})).await;
            let wanted = usize::try_from(most).unwrap().min(360);
            assert_eq!(format_matches(&answer), all[..wanted], "{most}");
            assert_eq!(
                (&answer["truncated"], &answer["total_matches"]),
                (&json!(truncated), &json!(360)),
                "{most}"
            );
        }
    }
    let answer = kit.call("fs_search", json!({"pattern": "x", "max_results": 2, "show": "counts"})).await;
    assert_eq!(format_matches(&answer), ["d0/f000:3", "d0/f007:3"]);
    assert_eq!((&answer["truncated"], &answer["total_matches"]), (&json!(true), &json!(120)));
}

#[tokio::test]
async fn bad_patterns_are_answered_with_what_to_do() {
    let kit = sample();
    for (input, hint) in [
        (json!({"pattern": "fn main("}), "fixed"),
        (json!({"pattern": ""}), "Pass"),
        (json!({"pattern": "a\nb"}), "context_lines"),
        (json!({"pattern": "a\nb", "fixed": true}), "context_lines"),
        (json!({"pattern": "a", "glob": "["}), "backslash"),
        (json!({"pattern": "a", "glob": "../*"}), "path"),
    ] {
        let error = kit.try_call("fs_search", input.clone()).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{input}");
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{input}: {error}");
    }
    let error = kit.try_call("fs_search", json!({"pattern": "a", "path": "nothing"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound);
}

#[tokio::test]
async fn binary_files_are_passed_over_and_other_encodings_are_read() {
    let kit = FindFixture::new(&[]);
    kit.write_file("binary", b"needle\n\0\nneedle\n");
    let late = [b"needle\n".repeat(20_000), b"\0".to_vec()].concat();
    kit.write_file("late", &late);
    kit.write_file("latin", b"caf\xe9 needle\n");
    let utf16: Vec<u8> = "\u{feff}zwölf needle\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    kit.write_file("utf16", &utf16);
    let answer = kit.call("fs_search", json!({"pattern": "needle"})).await;
    assert_eq!(format_matches(&answer), ["latin:1:6 caf\u{fffd} needle", "utf16:1:7 zwölf needle"]);
    let answer = kit.call("fs_search", json!({"pattern": "needle", "path": "binary"})).await;
    assert_eq!(answer["notes"], json!(["The file is binary and was not searched."]));
}

#[tokio::test]
async fn a_long_line_is_cut_and_said_to_be() {
    let kit = FindFixture::new(&[]);
    kit.write_file("min.js", format!("{}needle{}\n", "a".repeat(100_000), "b".repeat(100_000)).as_bytes());
    let answer = kit.call("fs_search", json!({"pattern": "needle"})).await;
    let hit = &answer["matches"][0];
    assert_eq!((&hit["cut"], &hit["column"]), (&json!(true), &json!(100_001)));
    assert!(hit["text"].as_str().unwrap().len() <= 500 && hit["text"].as_str().unwrap().contains("needle"));
}
