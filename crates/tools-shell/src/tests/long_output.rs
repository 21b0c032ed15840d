//! Output that is too long for a reply.

use super::shell_fixture::ShellFixture;
use serde_json::json;

#[tokio::test]
async fn long_output_is_its_beginning_its_end_and_a_handle() {
    let bench = ShellFixture::new();
    let input = json!({"command": "seq 10000; echo oops >&2", "max_output_bytes": 1_000});
    let answer = bench.fine("shell_exec", input).await;
    assert_eq!((&answer["truncated"], &answer["stderr"]), (&json!(true), &json!("oops\n")), "{answer}");
    let (head, tail) = (answer["stdout"].as_str().unwrap(), answer["stdout_tail"].as_str().unwrap());
    assert!(head.starts_with("1\n2\n") && head.ends_with('\n'), "{head}");
    assert!(tail.ends_with("\n9999\n10000\n") && tail.starts_with(|c: char| c.is_ascii_digit()), "{tail}");
    assert!(head.len() + tail.len() + 5 <= 1_000);
    let whole: String = (1..=10_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(answer["original_bytes"], whole.len() + 5);
    assert_eq!(bench.results.text(answer["handle"].as_str().unwrap()), whole);
    assert!(answer.get("stderr_handle").is_none() && answer.get("stderr_tail").is_none(), "{answer}");
}

#[tokio::test]
async fn both_streams_keep_to_one_bound() {
    let bench = ShellFixture::new();
    let input = json!({"command": "seq 5000; seq 5000 >&2", "max_output_bytes": 2_000});
    let answer = bench.fine("shell_exec", input).await;
    let parts = ["stdout", "stdout_tail", "stderr", "stderr_tail"];
    let size: usize = parts.iter().map(|part| answer[part].as_str().unwrap().len()).sum();
    assert!(size <= 2_000 && size > 1_500, "{size}");
    let handles = [&answer["handle"], &answer["stderr_handle"]];
    let texts = handles.map(|handle| bench.results.text(handle.as_str().unwrap()));
    assert!(texts[0] == texts[1] && texts[0].ends_with("5000\n"));
}

#[tokio::test]
async fn output_that_just_fits_is_whole() {
    let bench = ShellFixture::new();
    let rows = [(10, false), (9, true)];
    for (bound, cut) in rows {
        let input = json!({"command": "printf 1234567890", "max_output_bytes": bound});
        let answer = bench.fine("shell_exec", input).await;
        assert_eq!(answer["truncated"], cut, "{answer}");
        assert_eq!(answer.get("handle").is_some(), cut, "{answer}");
    }
}

#[tokio::test]
async fn one_giant_line_is_bounded_and_not_torn() {
    let bench = ShellFixture::new();
    let command = "head -c 300000 /dev/zero | tr '\\0' x | sed 's/x/ä/g'";
    let answer = bench.fine("shell_exec", json!({"command": command, "max_output_bytes": 1_001})).await;
    for part in ["stdout", "stdout_tail"] {
        let text = answer[part].as_str().unwrap();
        assert!(text.len() <= 501 && text.chars().all(|c| c == 'ä'), "{part}: {} {answer}", text.len());
    }
    assert_eq!(answer["original_bytes"], 600_000);
}

#[tokio::test]
async fn a_report_is_read_from_all_of_the_output() {
    let bench = ShellFixture::new();
    let command = "echo '1..2'; echo 'not ok 1 - first'; seq 20000; echo 'ok 2 - second'";
    let answer = bench.fine("run_tests", json!({"command": command, "max_output_bytes": 200})).await;
    assert_eq!(answer["truncated"], true);
    let summary = &answer["summary"];
    assert_eq!((&summary["passed"], &summary["failed"]), (&json!(1), &json!(1)), "{answer}");
    assert_eq!(answer["failures"][0]["name"], "first");
}
