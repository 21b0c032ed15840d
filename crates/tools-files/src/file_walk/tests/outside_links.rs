//! Links to the outside, unusual names, and cancelled calls.

use super::FindFixture;
use octo_toolkit::fs::{Read, Walked};
use octo_toolkit::{CallContext, Fs, Grant, Json, Kind, WorkPath};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Content or name of something outside, in any reply.
fn leaks(answer: &Value) -> bool {
    let text = answer.to_string();
    text.contains("secret") || text.contains("leak")
}

#[tokio::test]
async fn sec_fs_15_nothing_of_the_outside_is_found() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(outside.path().join("leak")).unwrap();
    for name in ["leak-a", "leak/leak-b"] {
        std::fs::write(outside.path().join(name), "secret\n").unwrap();
    }
    let kit = FindFixture::new(&[("in/fine", "fine\n"), (".gitignore", "nothing\n")]);
    let real = outside.path();
    for (name, target) in
        [("in/dir", real.to_owned()), ("in/file", real.join("leak-a")), ("top", real.join("leak"))]
    {
        let hop = format!("hop{}", name.len());
        symlink(&target, kit.path().join(&hop)).unwrap();
        symlink(kit.path().join(&hop), kit.path().join(name)).unwrap();
    }
    let every = json!({"hidden": true, "ignored": true});
    let calls = [
        ("fs_search", json!({"pattern": "secret|leak|."})),
        ("fs_glob", json!({"pattern": "**", "kind": "any"})),
        ("fs_glob", json!({"pattern": "in/dir/*", "kind": "any"})),
        ("fs_list", json!({"recursive": true, "long_format": true})),
        ("fs_list", json!({"path": "in"})),
        ("fs_tree", json!({"max_depth": 9, "include_hidden": true})),
    ];
    for (tool, mut input) in calls {
        if matches!(tool, "fs_search" | "fs_glob") {
            input.as_object_mut().unwrap().extend(every.as_object().unwrap().clone());
        }
        let mut answer = kit.call(tool, input.clone()).await;
        // The text of a link is inside; only it may name the outside.
        answer["entries"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .for_each(|entry| entry["target"] = Value::Null);
        answer["tree"] = answer["tree"].as_str().map(without_targets).into();
        assert!(!leaks(&answer), "{tool} {input}: {answer}");
    }
    for tool in ["fs_search", "fs_glob", "fs_list", "fs_tree"] {
        for path in
            ["in/dir", "in/dir/leak", "in/file", "top", "top/..", "../..", "/", real.to_str().unwrap()]
        {
            let mut input = json!({"path": path});
            if matches!(tool, "fs_search" | "fs_glob") {
                input["pattern"] = json!(if tool == "fs_search" { "." } else { "**" });
            }
            let error = kit.try_call(tool, input).await.unwrap_err();
            assert_eq!(error.kind, Kind::Denied, "{tool} {path}: {error}");
            assert!(!error.text().contains("secret"), "{tool} {path}: {error}");
        }
    }
}

fn without_targets(tree: &str) -> String {
    tree.lines().map(|line| line.split(" -> ").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn names_that_are_not_utf8_are_shown_as_far_as_they_can() {
    let kit = FindFixture::new(&[]);
    std::fs::write(kit.path().join(OsStr::from_bytes(b"caf\xe9.txt")), "needle\n").unwrap();
    let name = "caf\u{fffd}.txt";
    assert_eq!(kit.call("fs_glob", json!({"pattern": "*.txt"})).await["paths"], json!([name]));
    assert_eq!(kit.call("fs_list", json!({})).await["entries"][0]["name"], name);
    assert_eq!(kit.call("fs_search", json!({"pattern": "needle"})).await["matches"][0]["path"], name);
    assert!(kit.call("fs_tree", json!({})).await["tree"].as_str().unwrap().contains(name));
}

#[tokio::test]
async fn folders_that_could_not_be_read_are_named() {
    let kit = FindFixture::new(&[]);
    let fs = <Fs<Read> as Grant>::open(&kit.capabilities).unwrap();
    let place = fs.place(&WorkPath::from("a")).unwrap();
    let walked = Walked { unread: 1, unread_paths: vec!["b".into()] };
    assert_eq!(super::super::unread_notes(&place, &walked), ["Directories that could not be read: 1 (a/b)."]);
    assert!(super::super::unread_notes(&place, &Walked::default()).is_empty());
}

/// Many names of one large file: hours of work, no disk space.
fn endless(kit: &FindFixture) {
    let line = b"the quick brown fox jumps over the lazy dog and finds nothing at all in here\n";
    kit.write_file("0/big", &line.repeat(50_000));
    for folder in 0..40 {
        let path = kit.path().join(format!("d{folder}"));
        std::fs::create_dir(&path).unwrap();
        for file in 0..40 {
            std::fs::hard_link(kit.path().join("0/big"), path.join(format!("f{file}"))).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_search_ends() {
    let kit = FindFixture::new(&[]);
    endless(&kit);
    let toolbox = crate::toolbox();
    let tool = toolbox.tools.iter().find(|tool| tool.name == "fs_search").unwrap();
    for (wait, left, kind) in
        [(0, 60_000, Kind::Cancelled), (50, 60_000, Kind::Cancelled), (60_000, 100, Kind::Timeout)]
    {
        let cancel = CancellationToken::new();
        let deadline = Instant::now() + Duration::from_millis(left);
        let cx = CallContext::new(Arc::new(octo_model::Caller::local()), deadline, cancel.clone());
        let input = Json::from(json!({"pattern": "(x|y|z)[aeiou]{7}(qq|rr)"}));
        let timer = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            cancel.cancel();
        });
        let began = Instant::now();
        let error = tool.run(input, &kit.capabilities, &cx).await.unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(began.elapsed() < Duration::from_millis(1_100), "{:?}", began.elapsed());
        timer.abort();
    }
}
