//! `run_tests` and `run_build`.

use super::shell_fixture::ShellFixture;
use octo_toolkit::Kind;
use serde_json::json;

#[tokio::test]
async fn tests_pass_only_when_everything_says_so() {
    let bench = ShellFixture::new();
    let rows = [
        ("echo '1..1'; echo 'ok 1 - a'", true, "tap", 0),
        ("echo '1..1'; echo 'not ok 1 - a'", false, "tap", 1),
        ("echo '1..1'; echo 'ok 1 - a'; exit 1", false, "tap", 0),
        ("echo fine", true, "unknown", 0),
        ("echo bad; exit 2", false, "unknown", 0),
        ("echo '2 passed in 0.10s'", true, "pytest", 0),
    ];
    for (command, passed, framework, failures) in rows {
        let answer = bench.fine("run_tests", json!({"command": command})).await;
        let found = (&answer["passed"], &answer["summary"]["framework"]);
        assert_eq!(found, (&json!(passed), &json!(framework)), "{command}: {answer}");
        assert_eq!(answer["failures"].as_array().unwrap().len(), failures, "{command}");
    }
}

#[tokio::test]
async fn tests_that_run_out_of_time_have_not_passed() {
    let command = "echo '1..1'; echo 'ok 1 - a'; sleep 60";
    let answer = ShellFixture::new().fine("run_tests", json!({"command": command, "timeout_s": 1})).await;
    assert_eq!((&answer["passed"], &answer["timed_out"]), (&json!(false), &json!(true)), "{answer}");
}

#[tokio::test]
async fn a_junit_file_is_read_when_this_run_wrote_it() {
    let bench = ShellFixture::new();
    let report =
        "<testsuite><testcase name='a' file='t.x' line='4'><failure message='bad'/></testcase></testsuite>";
    bench.write_file("written.xml", report);
    let run = |command: &str| json!({"command": command, "junit": "report.xml"});
    let answer = bench.fine("run_tests", run("cp written.xml report.xml; exit 1")).await;
    let failure = json!({"name": "a", "file": "t.x", "line": 4, "message": "bad"});
    assert_eq!(
        (&answer["summary"]["framework"], &answer["failures"][0]),
        (&json!("junit"), &failure),
        "{answer}"
    );
    for (command, said) in
        [("true", "was not written"), ("rm report.xml", "could not"), ("echo x > report.xml", "contains no")]
    {
        let answer = bench.fine("run_tests", run(command)).await;
        assert!(answer["note"].as_str().unwrap().contains(said), "{command}: {answer}");
        assert_eq!(answer["summary"]["framework"], "unknown");
    }
    let outside = json!({"command": "true", "junit": "../../etc/passwd"});
    assert_eq!(bench.call("run_tests", outside).await.unwrap_err().kind, Kind::Denied);
}

#[tokio::test]
async fn what_does_not_compile_is_told_instead_of_failures() {
    let answer = ShellFixture::new()
        .fine("run_tests", json!({"command": "echo 'a.c:3:1: error: x' >&2; exit 1"}))
        .await;
    let error = json!({"file": "a.c", "line": 3, "column": 1, "message": "x"});
    assert_eq!((&answer["passed"], &answer["errors"][0]), (&json!(false), &error));
}

#[tokio::test]
async fn builds_give_errors_and_warnings() {
    let bench = ShellFixture::new();
    bench.write_file("a.c", "int main(void) { int x; return y; }\n");
    let answer = bench.fine("run_build", json!({"command": "gcc -Wall -c a.c"})).await;
    assert_eq!(answer["succeeded"], false, "{answer}");
    assert_eq!((&answer["errors"][0]["file"], &answer["errors"][0]["line"]), (&json!("a.c"), &json!(1)));
    assert_eq!(answer["warnings"].as_array().unwrap().len(), 1, "{answer}");
    bench.write_file("a.c", "int main(void) { return 0; }\n");
    let answer = bench.fine("run_build", json!({"command": "gcc -Wall -c a.c"})).await;
    assert_eq!((&answer["succeeded"], &answer["errors"]), (&json!(true), &json!([])), "{answer}");
}
