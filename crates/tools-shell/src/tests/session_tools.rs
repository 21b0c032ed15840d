//! Sessions from start to end.

use super::shell_fixture::ShellFixture;
use octo_toolkit::Kind;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

async fn start(bench: &ShellFixture, input: Value) -> (String, Value) {
    let answer = bench.fine("shell_start", input).await;
    (answer["session_id"].as_str().unwrap().to_owned(), answer)
}

#[tokio::test]
async fn a_session_is_read_written_to_and_stopped() {
    let bench = ShellFixture::new();
    let command = "echo ready; while read x; do echo got $x; done";
    let (id, answer) = start(&bench, json!({"command": command, "wait_ms": 300})).await;
    assert_eq!((&answer["output"], &answer["running"]), (&json!("ready\n"), &json!(true)), "{answer}");
    let told = bench.fine("shell_write", json!({"session_id": id, "text": "one"})).await;
    assert_eq!((&told["output"], &told["from"]), (&json!("got one\n"), &json!(6)), "{told}");
    let nothing = bench.fine("shell_read", json!({"session_id": id, "wait_ms": 50})).await;
    assert_eq!((&nothing["output"], &nothing["next"]), (&json!(""), &json!(14)));
    let again = bench.fine("shell_read", json!({"session_id": id, "from": 0})).await;
    assert_eq!(again["output"], "ready\ngot one\n");
    let listed = bench.fine("shell_sessions", json!({"running": true})).await;
    let entry = &listed["sessions"][0];
    assert_eq!(
        (&entry["session_id"], &entry["command"], &entry["cwd"]),
        (&json!(id), &json!(command), &json!("."))
    );
    let last = bench.fine("shell_stop", json!({"session_id": id})).await;
    assert_eq!(last["running"], false, "{last}");
    assert_eq!(bench.fine("shell_sessions", json!({"running": true})).await["sessions"], json!([]));
    let ended = bench.fine("shell_sessions", json!({})).await;
    assert_eq!(ended["sessions"][0]["running"], false, "{ended}");
    let late = bench.call("shell_write", json!({"session_id": id, "text": "x"})).await.unwrap_err();
    assert_eq!(late.kind, Kind::Conflict);
}

#[tokio::test]
async fn what_ends_at_once_tells_its_exit_code_without_waiting() {
    let begun = Instant::now();
    let (_, answer) =
        start(&ShellFixture::new(), json!({"command": "echo x; exit 4", "wait_ms": 20_000})).await;
    assert_eq!((&answer["output"], &answer["exit_code"]), (&json!("x\n"), &json!(4)), "{answer}");
    assert_eq!(answer["running"], false);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn the_end_of_input_is_passed_on() {
    let bench = ShellFixture::new();
    let (id, _) = start(&bench, json!({"command": "sort", "wait_ms": 0})).await;
    let first = bench.fine("shell_write", json!({"session_id": id, "text": "b", "wait_ms": 0})).await;
    assert_eq!(first["output"], "");
    let input = json!({"session_id": id, "text": "a", "end_input": true, "wait_ms": 5_000});
    assert_eq!(bench.fine("shell_write", input).await["output"], "a\nb\n");
}

#[tokio::test]
async fn a_pattern_waits_for_its_line_and_gives_only_that() {
    let bench = ShellFixture::new();
    let command = "echo starting; sleep 0.3; echo listening on 5173; echo noise; sleep 30";
    let (id, _) = start(&bench, json!({"command": command, "wait_ms": 0})).await;
    let input = json!({"session_id": id, "pattern": "listening on \\d+", "wait_ms": 10_000});
    let begun = Instant::now();
    assert_eq!(bench.fine("shell_read", input).await["output"], "listening on 5173\n");
    assert!(begun.elapsed() < Duration::from_secs(5));
    let log = json!({"session_id": id, "from": 0, "pattern": "^(start|noise)", "wait_ms": 5_000});
    assert_eq!(bench.fine("shell_read", log).await["output"], "starting\nnoise\n");
    let none = json!({"session_id": id, "from": 0, "pattern": "absent", "wait_ms": 100});
    assert_eq!(bench.fine("shell_read", none).await["output"], "");
    let bad = bench.call("shell_read", json!({"session_id": id, "pattern": "("})).await.unwrap_err();
    assert_eq!(bad.kind, Kind::Invalid);
}

#[tokio::test]
async fn reading_in_small_parts_tears_no_character() {
    let bench = ShellFixture::new();
    let (id, _) =
        start(&bench, json!({"command": "printf 'aäöü€😀z'", "wait_ms": 5_000, "max_bytes": 2})).await;
    let mut text =
        bench.fine("shell_read", json!({"session_id": id, "from": 0, "max_bytes": 1})).await["output"]
            .as_str()
            .unwrap()
            .to_owned();
    for _ in 0..10 {
        let part = bench.fine("shell_read", json!({"session_id": id, "max_bytes": 5, "wait_ms": 0})).await;
        text.push_str(part["output"].as_str().unwrap());
    }
    assert_eq!(text, "aäöü€😀z");
}

#[tokio::test]
async fn a_terminal_has_a_size_and_takes_keys() {
    let bench = ShellFixture::new();
    let command = "stty size; trap 'stty size' WINCH; trap 'echo interrupted; exit 7' INT; while :; do sleep 0.05; done";
    let input = json!({"command": command, "tty": true, "cols": 100, "rows": 40, "wait_ms": 0});
    let (id, _) = start(&bench, input).await;
    let sees = |pattern: &str| json!({"session_id": id, "from": 0, "pattern": pattern, "wait_ms": 10_000});
    assert!(bench.fine("shell_read", sees("40 100")).await["output"].as_str().unwrap().starts_with("40 100"));
    bench.fine("shell_resize", json!({"session_id": id, "cols": 66, "rows": 22})).await;
    assert!(!bench.fine("shell_read", sees("22 66")).await["output"].as_str().unwrap().is_empty());
    bench.fine("shell_write", json!({"session_id": id, "text": "\u{3}", "enter": false})).await;
    let end = bench.fine("shell_read", sees("interrupted")).await;
    assert!(!end["output"].as_str().unwrap().is_empty(), "{end}");
}

#[tokio::test]
async fn a_session_without_a_terminal_has_no_size() {
    let bench = ShellFixture::new();
    let (id, _) = start(&bench, json!({"command": "sleep 30", "wait_ms": 0})).await;
    for input in
        [json!({"session_id": id, "cols": 80, "rows": 24}), json!({"session_id": id, "cols": 0, "rows": 24})]
    {
        assert_eq!(bench.call("shell_resize", input).await.unwrap_err().kind, Kind::Invalid);
    }
}

#[tokio::test]
async fn nobody_sees_the_sessions_of_others() {
    let bench = ShellFixture::new();
    let (id, _) = start(&bench, json!({"command": "sleep 30", "wait_ms": 0})).await;
    let other = bench.cx("other");
    let calls = [
        ("shell_read", json!({"session_id": id})),
        ("shell_write", json!({"session_id": id, "text": "x"})),
        ("shell_resize", json!({"session_id": id, "cols": 80, "rows": 24})),
        ("shell_stop", json!({"session_id": id})),
    ];
    for (name, input) in calls {
        let error = bench.call_as(&other, name, input).await.expect_err(name);
        assert_eq!(error.kind, Kind::NotFound, "{name}");
    }
    assert_eq!(bench.call_as(&other, "shell_sessions", json!({})).await.unwrap()["sessions"], json!([]));
}

#[tokio::test]
async fn a_session_ends_at_its_time_limit() {
    let bench = ShellFixture::new();
    let (id, _) = start(&bench, json!({"command": "sleep 60", "timeout_s": 1, "wait_ms": 0})).await;
    let ended = bench.fine("shell_read", json!({"session_id": id, "wait_ms": 15_000})).await;
    assert_eq!((&ended["timed_out"], &ended["exit_code"]), (&json!(true), &json!(-1)), "{ended}");
}

#[tokio::test]
async fn the_last_words_of_a_stopped_session_are_its_last() {
    let bench = ShellFixture::new();
    let (id, _) =
        start(&bench, json!({"command": "seq 5000; sleep 60", "wait_ms": 0, "max_bytes": 10})).await;
    let (all, deadline) = (23_893, Instant::now() + Duration::from_secs(20));
    let look = json!({"session_id": id, "from": 0, "max_bytes": 10, "wait_ms": 10});
    while bench.fine("shell_read", look.clone()).await["total"] != all {
        assert!(Instant::now() < deadline);
    }
    let last = bench.fine("shell_stop", json!({"session_id": id, "max_bytes": 100})).await;
    let output = last["output"].as_str().unwrap();
    assert!(output.ends_with("4999\n5000\n") && output.len() <= 100, "{last}");
    assert_eq!(last["from"].as_u64().unwrap() + output.len() as u64, last["next"].as_u64().unwrap());
}
