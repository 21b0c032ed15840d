//! jq worker processes: results, limits and termination.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests look at processes and fail where they must"
)]

use octo_hub::jq_eval::Jq;
use octo_model::{Json, Kind};
use octoprox::jq_workers::JqWorkers;
use std::path::Path;
use std::time::{Duration, Instant};

fn workers(timeout: Duration) -> JqWorkers {
    JqWorkers::with_timeout(Path::new(env!("CARGO_BIN_EXE_octoprox")), timeout)
}

fn input() -> Json {
    Json::parse(r#"{"rows": [{"n": 1}, {"n": 2}]}"#).unwrap()
}

/// Running child processes of this process.
fn children() -> usize {
    pids().len()
}

fn pids() -> Vec<String> {
    let own = std::process::id().to_string();
    let of_mine = |id: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let rest = stat.rsplit(')').next().unwrap_or_default();
        let mut words = rest.split_whitespace();
        words.next().is_some_and(|state| state != "Z") && words.next() == Some(&own)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|id| of_mine(id)).collect()
}

#[tokio::test]
async fn answers_and_says_what_is_wrong() {
    let workers = workers(Duration::from_secs(10));
    for (program, answer) in [
        (".rows[].n", Ok("1\n2\n")),
        (".rows | length", Ok("2\n")),
        ("$nothing", Err(Kind::Invalid)),
        (".rows[", Err(Kind::Invalid)),
        ("error(\"no\")", Err(Kind::Invalid)),
        ("env.HOME", Ok("\"\"\n")),
    ] {
        let given = workers.run(program, input()).await.map_err(|error| error.kind);
        assert_eq!(given, answer.map(str::to_owned), "{program}");
    }
}

#[tokio::test]
async fn a_process_takes_one_expression_after_the_other_and_ends_with_its_owner() {
    let workers = workers(Duration::from_secs(10));
    for program in [".rows[0].n", ".rows[", "error(\"no\")", ".rows[0].n"] {
        let _ = workers.run(program, input()).await;
        assert_eq!(children(), 1, "{program}");
    }
    // Two concurrent calls need two workers; a failed worker is not reused.
    let (one, other) = tokio::join!(workers.run(".", input()), workers.run(".", input()));
    assert!(one.is_ok() && other.is_ok() && children() == 2);
    assert!(workers.run("\"0123456789\" * 1000000000", input()).await.is_err());
    assert_eq!(workers.run(".rows | length", input()).await.unwrap(), "2\n");
    drop(workers);
    let deadline = Instant::now() + Duration::from_secs(5);
    while children() > 0 {
        assert!(Instant::now() < deadline, "{} processes are left", children());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_process_that_was_killed_is_not_missed() {
    let workers = workers(Duration::from_secs(10));
    for _ in 0..3 {
        assert_eq!(workers.run(".rows | length", input()).await.unwrap(), "2\n");
        for id in pids() {
            let killed = std::process::Command::new("kill").args(["-9", &id]).status();
            assert!(killed.unwrap().success());
        }
    }
}

#[tokio::test]
async fn what_does_not_end_is_ended() {
    let begun = Instant::now();
    let error = workers(Duration::from_millis(300)).run("def f: f; f", input()).await.unwrap_err();
    assert_eq!(error.kind, Kind::Timeout);
    assert!(begun.elapsed() < Duration::from_secs(3));
    let patient = workers(Duration::from_secs(10));
    let dropped = tokio::time::timeout(Duration::from_millis(300), patient.run("def f: f; f", input())).await;
    assert!(dropped.is_err());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(children(), 0);
}

/// The memory limit ends a child that exceeds it.
#[tokio::test]
async fn what_needs_too_much_is_ended() {
    let program = "\"0123456789\" * 1000000000 | length";
    let error = workers(Duration::from_secs(20)).run(program, input()).await.unwrap_err();
    assert_eq!(error.kind, Kind::TooLarge, "{error}");
}
