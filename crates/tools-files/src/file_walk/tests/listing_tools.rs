//! `fs_glob`, `fs_list`, `fs_tree` and `fs_roots`.

use super::{FindFixture, texts};
use octo_toolkit::Kind;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

fn sample() -> FindFixture {
    let kit = FindFixture::new(&[
        ("a.rs", "1\n2\n"),
        ("src/b.rs", "1\n2\n3"),
        ("src/deep/c.rs", ""),
        ("src/deep/d.txt", "one\n"),
        (".github/ci.yml", "x\n"),
        (".env", "x\n"),
        (".git/config", "x\n"),
        ("out/e.rs", "x\n"),
        ("x.log", "x\n"),
        (".gitignore", "out/\n*.log\n"),
        (".octoprox-0123456789abcdef.tmp", "x"),
    ]);
    kit.write_file("pic.png", b"\x89PNG\0\0");
    std::os::unix::fs::symlink("a.rs", kit.path().join("link")).unwrap();
    kit
}

#[tokio::test]
async fn patterns_find_paths() {
    let kit = sample();
    let rs = ["a.rs", "src/b.rs", "src/deep/c.rs"];
    let table: &[(Value, &[&str])] = &[
        (json!({"pattern": "**/*.rs"}), &rs),
        (json!({"pattern": "*.rs"}), &rs),
        (json!({"pattern": "*.rs", "path": "src"}), &rs[1..]),
        (json!({"pattern": "*.rs", "path": "./src/"}), &rs[1..]),
        (json!({"pattern": "deep/*", "path": "src"}), &["src/deep/c.rs", "src/deep/d.txt"]),
        (json!({"pattern": "src/*.rs"}), &rs[1..2]),
        (json!({"pattern": "src/**"}), &["src/b.rs", "src/deep/c.rs", "src/deep/d.txt"]),
        (json!({"pattern": "{a,b}.rs"}), &rs[..2]),
        (json!({"pattern": ".env*"}), &[".env"]),
        (json!({"pattern": ".github/**"}), &[".github/ci.yml"]),
        (json!({"pattern": "*.yml"}), &[]),
        (json!({"pattern": "*.yml", "hidden": true}), &[".github/ci.yml"]),
        (json!({"pattern": "e.rs", "ignored": true}), &["out/e.rs"]),
        (json!({"pattern": "**", "kind": "directory"}), &["src", "src/deep"]),
        (json!({"pattern": "{link,src}", "kind": "any"}), &["link", "src"]),
        (json!({"pattern": "*.rs", "path": "a.rs"}), &["a.rs"]),
        (json!({"pattern": "nothing"}), &[]),
    ];
    for (input, wanted) in table {
        let answer = kit.call("fs_glob", input.clone()).await;
        assert_eq!(texts(&answer["paths"]), *wanted, "{input}");
        assert_eq!(
            (&answer["truncated"], &answer["total"]),
            (&json!(false), &json!(wanted.len())),
            "{input}"
        );
    }
}

#[tokio::test]
async fn found_paths_are_cut_exactly_and_in_order() {
    let kit = FindFixture::new(&[]);
    for file in 0..600 {
        kit.write_file(&format!("d{}/f{file:03}", file % 3), b"");
    }
    let all = kit.call("fs_glob", json!({"pattern": "f*"})).await;
    let all = texts(&all["paths"]);
    assert!(all.len() == 600 && all.is_sorted());
    for (most, truncated) in [(0, true), (1, true), (599, true), (600, false), (u64::MAX, false)] {
        let answer = kit.call("fs_glob", json!({"pattern": "f*", "max_results": most})).await;
        assert_eq!(texts(&answer["paths"]), all[..usize::try_from(most).unwrap().min(600)]);
        assert_eq!(answer["truncated"], truncated, "{most}");
    }
}

fn names(answer: &Value) -> Vec<String> {
    let one = |entry: &Value| {
        let ignored = if entry["ignored"] == true { " ignored" } else { "" };
        format!("{} {}{ignored}", entry["name"].as_str().unwrap(), entry["type"].as_str().unwrap())
    };
    answer["entries"].as_array().unwrap().iter().map(one).collect()
}

#[tokio::test]
async fn folders_are_listed() {
    let kit = sample();
    let all = [
        ".git directory",
        ".github directory",
        "out directory",
        "src directory",
        ".env file",
        ".gitignore file",
        "a.rs file",
        "link symlink",
        "pic.png file",
        "x.log file",
    ];
    let answer = kit.call("fs_list", json!({})).await;
    assert_eq!(names(&answer), all);
    assert_eq!(
        (&answer["path"], &answer["count"], &answer["truncated"]),
        (&json!("."), &json!(10), &json!(false))
    );
    assert_eq!((&answer["entries"][6]["size"], &answer["entries"][7]["target"]), (&json!(4), &json!("a.rs")));
    assert_eq!(answer["entries"][6].get("modified"), None);

    let answer = kit.call("fs_list", json!({"include_hidden": false})).await;
    assert_eq!(names(&answer).len(), 6);

    let answer = kit.call("fs_list", json!({"recursive": true, "include_hidden": false})).await;
    let wanted = [
        "a.rs file",
        "link symlink",
        "out directory ignored",
        "pic.png file",
        "src directory",
        "src/b.rs file",
        "src/deep directory",
        "src/deep/c.rs file",
        "src/deep/d.txt file",
        "x.log file ignored",
    ];
    assert_eq!(names(&answer), wanted);
}

#[tokio::test]
async fn the_long_format_tells_permissions_and_times() {
    let kit = FindFixture::new(&[("run.sh", "x")]);
    std::fs::set_permissions(kit.path().join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    let answer = kit.call("fs_list", json!({"long_format": true})).await;
    let entry = &answer["entries"][0];
    assert_eq!((&entry["permissions"], &entry["size"]), (&json!("rwxr-xr-x"), &json!(1)));
    let modified: jiff::Timestamp = entry["modified"].as_str().unwrap().parse().unwrap();
    assert!(modified.as_second() > 1_700_000_000);
}

#[tokio::test]
async fn a_full_folder_is_cut_and_counted() {
    let kit = FindFixture::new(&[]);
    for file in 0..5_001 {
        std::fs::write(kit.path().join(format!("{file:04}")), "").unwrap();
    }
    let answer = kit.call("fs_list", json!({})).await;
    assert_eq!(
        (&answer["count"], &answer["total"], &answer["truncated"]),
        (&json!(5000), &json!(5001), &json!(true))
    );
    assert_eq!(answer["entries"][4999]["name"], "4999");
    std::fs::remove_file(kit.path().join("0000")).unwrap();
    assert_eq!(kit.call("fs_list", json!({})).await["truncated"], false);
}

#[tokio::test]
async fn what_is_no_folder_is_not_listed_or_drawn() {
    let kit = sample();
    for tool in ["fs_list", "fs_tree"] {
        for (path, kind) in [("a.rs", Kind::Invalid), ("none", Kind::NotFound)] {
            let error = kit.try_call(tool, json!({"path": path})).await.unwrap_err();
            assert_eq!((error.kind, error.hint.is_some()), (kind, true), "{tool} {path}");
        }
    }
}

#[tokio::test]
async fn a_tree_shows_lines_and_folds_what_is_ignored() {
    let kit = sample();
    let answer = kit.call("fs_tree", json!({})).await;
    let wanted = "./ (1 folder, 3 files, 2 ignored)
  src/ (1 folder, 1 file)
    deep/ (2 files)
      c.rs  0 lines
      d.txt  1 line
    b.rs  3 lines
  a.rs  2 lines
  link -> a.rs
  pic.png  6 B
  … 2 ignored: out/, x.log
";
    assert_eq!(answer["tree"].as_str().unwrap(), wanted);
    assert_eq!(
        (&answer["files"], &answer["directories"], &answer["truncated"]),
        (&json!(6), &json!(2), &json!(false))
    );

    let answer =
        kit.call("fs_tree", json!({"max_depth": 1, "dirs_only": true, "include_hidden": true})).await;
    let wanted = "./ (2 folders, 5 files, 3 ignored)
  .github/ (1 file)
  src/ (1 folder, 1 file)
  … 3 ignored: .git/, out/, x.log
";
    assert_eq!(answer["tree"].as_str().unwrap(), wanted);
}

#[tokio::test]
async fn a_crowded_tree_is_folded() {
    let kit = FindFixture::new(&[("a\nb", "")]);
    for file in 0..130 {
        kit.write_file(&format!("many/f{file:03}"), b"");
    }
    let answer = kit.call("fs_tree", json!({})).await;
    let tree = answer["tree"].as_str().unwrap();
    assert!(tree.contains("f099") && !tree.contains("f100") && tree.contains("    … 30 more\n"), "{tree}");
    assert!(tree.contains("  a\u{fffd}b  0 lines\n"), "{tree}");
    assert_eq!((&answer["truncated"], &answer["files"]), (&json!(true), &json!(131)));
    for folder in 0..60 {
        for file in 0..60 {
            kit.write_file(&format!("wide/{folder:02}/{file:02}"), b"");
        }
    }
    let answer = kit.call("fs_tree", json!({})).await;
    let lines = answer["tree"].as_str().unwrap().lines().count();
    assert!((2_000..2_010).contains(&lines), "{lines}");
    assert_eq!((&answer["truncated"], &answer["files"]), (&json!(true), &json!(3731)));
}

#[tokio::test]
async fn roots_are_named() {
    let kit = FindFixture::new(&[]);
    let answer = kit.call("fs_roots", json!({})).await;
    let path = kit.path().canonicalize().unwrap();
    let wanted = json!([{"name": "ws", "path": path.to_str().unwrap(), "writable": true, "default": true}]);
    assert_eq!(answer["roots"], wanted);
}
