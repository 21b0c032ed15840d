//! Long-running programs.

use crate::bench::{ExecFixture, sandboxes};
use octo_grants::exec::{Exit, SandboxChoice, SessionOutput, SessionState, Sessions, TerminalSize};
use octo_model::{Caller, Kind, Principal};
use std::time::{Duration, Instant};

const SIZE: TerminalSize = TerminalSize { rows: 24, columns: 80 };

/// Reads until the output contains a text.
async fn read_until(sessions: &Sessions, owner: &Caller, id: &str, text: &str) -> String {
    let begun = Instant::now();
    let mut all = String::new();
    while !all.contains(text) {
        assert!(begun.elapsed() < Duration::from_secs(10), "{text:?} never came; got {all:?}");
        let reading = sessions.read(owner, id, None, 10_000, Duration::from_secs(1)).await.unwrap();
        all.push_str(&String::from_utf8_lossy(&reading.bytes));
        assert!(all.contains(text) || reading.state == SessionState::Running, "ended with {all:?}");
    }
    all
}

async fn read_to_end(sessions: &Sessions, owner: &Caller, id: &str) -> SessionOutput {
    let begun = Instant::now();
    loop {
        let total = sessions.read(owner, id, Some(u64::MAX), 0, Duration::from_secs(1)).await.unwrap();
        if total.state != SessionState::Running {
            return sessions.read(owner, id, Some(0), usize::MAX, Duration::ZERO).await.unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(15), "it never ended");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_written_to_read_and_stopped() {
    for choice in sandboxes() {
        let bench = ExecFixture::new(choice);
        let sessions = Sessions::new(bench.exec.clone());
        let owner = Caller::local();
        let id = sessions
            .start(
                &owner,
                bench.job("echo one; echo two >&2; while read x; do echo got $x; done; echo over"),
                None,
            )
            .await
            .unwrap();
        assert!(id.len() == 14 && id.starts_with("s_"), "{id}");
        assert_eq!(read_until(&sessions, &owner, &id, "two\n").await, "one\ntwo\n", "{choice:?}");
        let nothing = sessions.read(&owner, &id, None, 100, Duration::from_millis(20)).await.unwrap();
        assert_eq!((nothing.bytes.len(), nothing.state), (0, SessionState::Running));
        sessions.write(&owner, &id, b"a\n").await.unwrap();
        assert_eq!(read_until(&sessions, &owner, &id, "a\n").await, "got a\n");
        let again = sessions.read(&owner, &id, Some(4), 3, Duration::ZERO).await.unwrap();
        assert_eq!(
            (again.from, again.next, again.bytes.as_slice(), again.skipped),
            (4, 7, b"two".as_slice(), 0)
        );
        let info = sessions.list(&owner);
        assert_eq!(info.len(), 1);
        assert_eq!(
            (info[0].id.as_str(), info[0].state, info[0].bytes, info[0].tty),
            (id.as_str(), SessionState::Running, 14, false)
        );
        let begun = Instant::now();
        let last = sessions.stop(&owner, &id).await.unwrap();
        assert!(matches!(last.state, SessionState::Ended(_)), "{choice:?}");
        assert!(begun.elapsed() < Duration::from_secs(2));
        assert_eq!(bench.leftover_processes(), Vec::<String>::new(), "{choice:?}");
        assert_eq!(sessions.write(&owner, &id, b"b\n").await.unwrap_err().kind, Kind::Conflict);

        let id = sessions.start(&owner, bench.job("cat; exit 4"), None).await.unwrap();
        sessions.write(&owner, &id, b"text").await.unwrap();
        sessions.close_input(&owner, &id).await.unwrap();
        let end = read_to_end(&sessions, &owner, &id).await;
        assert_eq!(
            (end.bytes.as_slice(), end.state),
            (b"text".as_slice(), SessionState::Ended(Exit::Code(4)))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ignores_everything_is_stopped() {
    for choice in sandboxes() {
        let bench = ExecFixture::new(choice);
        let sessions = Sessions::new(bench.exec.clone());
        let owner = Caller::local();
        let id = sessions
            .start(
                &owner,
                bench.job("trap '' TERM HUP INT; (setsid sleep 60 &); echo up; while :; do sleep 60; done"),
                None,
            )
            .await
            .unwrap();
        read_until(&sessions, &owner, &id, "up\n").await;
        let begun = Instant::now();
        let end = sessions.stop(&owner, &id).await.unwrap();
        assert_eq!(end.state, SessionState::Ended(Exit::Signal(9)), "{choice:?}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        assert_eq!(bench.leftover_processes(), Vec::<String>::new(), "{choice:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_one() {
    for choice in sandboxes() {
        let bench = ExecFixture::new(choice);
        let sessions = Sessions::new(bench.exec.clone());
        let owner = Caller::local();
        let line = "test -t 0 && test -t 1 && tty; stty -echo; stty size; while read x; do stty size; done </dev/tty";
        let id = sessions.start(&owner, bench.job(line), Some(SIZE)).await.unwrap();
        let first = read_until(&sessions, &owner, &id, "24 80\r\n").await;
        assert!(first.starts_with("/dev/"), "{choice:?}: {first:?}");
        sessions.resize(&owner, &id, TerminalSize { rows: 40, columns: 132 }).await.unwrap();
        sessions.write(&owner, &id, b"x\n").await.unwrap();
        read_until(&sessions, &owner, &id, "40 132\r\n").await;
        // Ctrl-D is the end of the input.
        sessions.write(&owner, &id, b"\x04").await.unwrap();
        let end = read_to_end(&sessions, &owner, &id).await;
        assert_eq!(end.state, SessionState::Ended(Exit::Code(0)), "{choice:?}");
        bench.assert_nothing_left(Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_reaches_the_program_and_not_its_sandbox() {
    for choice in sandboxes() {
        let bench = ExecFixture::new(choice);
        let sessions = Sessions::new(bench.exec.clone());
        let owner = Caller::local();
        let line =
            "trap 'echo interrupted' INT; stty -echo; echo ready; while :; do read x && echo got $x; done";
        let id = sessions.start(&owner, bench.job(line), Some(SIZE)).await.unwrap();
        read_until(&sessions, &owner, &id, "ready").await;
        // A shell that is just about to read notices a signal only at the next one.
        let (begun, mut seen) = (Instant::now(), String::new());
        while !seen.contains("interrupted") {
            assert!(begun.elapsed() < Duration::from_secs(20), "{seen:?}");
            sessions.write(&owner, &id, b"\x03").await.unwrap();
            let reading = sessions.read(&owner, &id, None, 10_000, Duration::from_secs(1)).await.unwrap();
            seen.push_str(&String::from_utf8_lossy(&reading.bytes));
        }
        sessions.write(&owner, &id, b"more\n").await.unwrap();
        read_until(&sessions, &owner, &id, "got more").await;
        sessions.stop(&owner, &id).await.unwrap();
        assert_eq!(bench.leftover_processes(), Vec::<String>::new(), "{choice:?}");
    }
}

fn processor_time() -> Duration {
    let usage = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = usage.rsplit(')').next().unwrap().split_whitespace().collect();
    Duration::from_millis(10 * (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_nobody_has_open_costs_nothing() {
    let bench = ExecFixture::new(SandboxChoice::None);
    let sessions = Sessions::new(bench.exec.clone());
    let owner = Caller::local();
    let line = "echo up; exec </dev/null >/dev/null 2>&1; sleep 1.5; echo back >/dev/tty";
    let id = sessions.start(&owner, bench.job(line), Some(SIZE)).await.unwrap();
    read_until(&sessions, &owner, &id, "up").await;
    let before = processor_time();
    read_until(&sessions, &owner, &id, "back").await;
    let used = processor_time() - before;
    assert!(used < Duration::from_millis(300), "{used:?} of processor time");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_belong_to_their_owner() {
    let bench = ExecFixture::new(SandboxChoice::Auto);
    let sessions = Sessions::new(bench.exec.clone());
    let owner = Caller::named("one");
    let other = Caller::from(Principal::new("other", "one"));
    let id = sessions.start(&owner, bench.job("cat"), None).await.unwrap();
    for stranger in [Caller::named("two"), other] {
        assert_eq!(sessions.list(&stranger), []);
        let missing = sessions.read(&stranger, "s_000000000000", None, 1, Duration::ZERO).await.unwrap_err();
        assert_eq!(missing.kind, Kind::NotFound);
        let wait = Duration::from_secs(5);
        assert_eq!(sessions.read(&stranger, &id, None, 1, wait).await.unwrap_err(), missing);
        assert_eq!(sessions.write(&stranger, &id, b"x").await.unwrap_err(), missing);
        assert_eq!(sessions.resize(&stranger, &id, SIZE).await.unwrap_err(), missing);
        assert_eq!(sessions.close_input(&stranger, &id).await.unwrap_err(), missing);
        assert_eq!(sessions.stop(&stranger, &id).await.unwrap_err(), missing);
    }
    assert_eq!(sessions.resize(&owner, &id, SIZE).await.unwrap_err().kind, Kind::Invalid);
    assert_eq!(sessions.list(&owner)[0].state, SessionState::Running);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_counted_and_ended_ones_make_room() {
    let bench = ExecFixture::new(SandboxChoice::None);
    let sessions = Sessions::new(bench.exec.clone());
    let owner = Caller::local();
    let first = sessions.start(&owner, bench.job("true"), None).await.unwrap();
    read_to_end(&sessions, &owner, &first).await;
    for _ in 0..15 {
        sessions.start(&owner, bench.job("sleep 60"), None).await.unwrap();
    }
    sessions.start(&owner, bench.job("sleep 60"), None).await.unwrap();
    assert_eq!(
        sessions.read(&owner, &first, None, 1, Duration::ZERO).await.unwrap_err().kind,
        Kind::NotFound
    );
    assert_eq!(
        sessions.start(&owner, bench.job("sleep 60"), None).await.unwrap_err().kind,
        Kind::Unavailable
    );
    sessions.start(&Caller::named("other"), bench.job("sleep 60"), None).await.unwrap();
    let copy = sessions.clone();
    drop(sessions);
    assert!(!bench.leftover_processes().is_empty());
    drop(copy);
    bench.assert_nothing_left(Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_last_megabytes_of_a_session_are_kept() {
    let bench = ExecFixture::new(SandboxChoice::Auto);
    let sessions = Sessions::new(bench.exec.clone());
    let owner = Caller::local();
    let id = sessions
        .start(&owner, bench.job("head -c 20000000 /dev/zero | tr '\\0' x; printf end"), None)
        .await
        .unwrap();
    let end = read_to_end(&sessions, &owner, &id).await;
    assert_eq!((end.total, end.next), (20_000_003, 20_000_003));
    assert_eq!(end.bytes.len(), 8 << 20);
    assert_eq!(end.skipped, end.from);
    assert!(end.bytes.ends_with(b"xend"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_a_time_limit() {
    let bench = ExecFixture::new(SandboxChoice::Auto);
    let sessions = Sessions::new(bench.exec.clone());
    let owner = Caller::local();
    let mut job = bench.job("echo up; yes");
    job.timeout = Duration::from_millis(500);
    let id = sessions.start(&owner, job, None).await.unwrap();
    let end = read_to_end(&sessions, &owner, &id).await;
    assert_eq!(end.state, SessionState::Ended(Exit::TimedOut));
    assert_eq!(bench.leftover_processes(), Vec::<String>::new());
}
