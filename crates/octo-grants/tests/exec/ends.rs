//! Every way to end a program: no process is left, and no call takes longer than promised.

use crate::bench::{ExecFixture, processes_with_mark, sandboxes, wait_until};
use octo_grants::exec::{ExceededLimit, ExecResult, Exit, SandboxChoice};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a call may take beyond its timeout.
const TIMEOUT_SLACK: Duration = Duration::from_millis(2_500);

const HOLDS_PIPE: &str = "sleep 60 & echo started";
const IGNORES_TERM: &str = "trap '' TERM; echo started; while :; do sleep 60; done";
const DAEMON: &str = "(setsid sh -c 'setsid sleep 60 >/dev/null 2>&1 </dev/null & sleep 60' >/dev/null 2>&1 </dev/null &) ; echo started";
const DAEMON_THAT_IGNORES: &str =
    "(trap '' TERM HUP INT; setsid sh -c 'while :; do sleep 60; done' &) ; echo started; sleep 60";
const OUTLIVES: &str = "(sleep 60; echo late) & (sleep 61 &) ; echo started; exit 3";

async fn run(bench: &ExecFixture, line: &str, timeout: Duration) -> ExecResult {
    let begun = Instant::now();
    let mut job = bench.job(line);
    job.timeout = timeout;
    let done = bench.exec.run(job).await.unwrap();
    let took = begun.elapsed();
    assert!(took < timeout + TIMEOUT_SLACK, "{line}: took {took:?}");
    assert_eq!(String::from_utf8_lossy(&done.stdout.head), "started\n", "{line}");
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_program_leaves_behind_is_gone() {
    let (short, long) = (Duration::from_millis(1_800), Duration::from_secs(30));
    let mut tasks = tokio::task::JoinSet::new();
    for choice in sandboxes() {
        for (line, timeout, exit) in [
            (HOLDS_PIPE, long, Exit::Code(0)),
            (OUTLIVES, long, Exit::Code(3)),
            (DAEMON, long, Exit::Code(0)),
            (IGNORES_TERM, short, Exit::TimedOut),
            (DAEMON_THAT_IGNORES, short, Exit::TimedOut),
            ("echo started; sleep 60", short, Exit::TimedOut),
            ("echo started; kill -9 $$", long, Exit::Signal(9)),
        ] {
            tasks.spawn(async move {
                let bench = ExecFixture::new(choice);
                let done = run(&bench, line, timeout).await;
                // Inside bubblewrap a signal is reported in the way of a shell.
                let told = if done.exit == Exit::Code(137) { Exit::Signal(9) } else { done.exit };
                assert_eq!(told, exit, "{choice:?}: {line}");
                assert_eq!(bench.leftover_processes(), Vec::<String>::new(), "{choice:?}: {line}");
                assert!(done.took < Duration::from_secs(4), "{choice:?}: {line} took {:?}", done.took);
            });
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_asked_before_it_is_ended() {
    for choice in sandboxes() {
        let bench = ExecFixture::new(choice);
        let mut job = bench.job("trap 'echo asked; exit 0' TERM; echo started; sleep 60 & wait");
        job.timeout = Duration::from_secs(3);
        let done = bench.exec.run(job).await.unwrap();
        assert_eq!(done.exit, Exit::TimedOut, "{choice:?}");
        assert_eq!(String::from_utf8_lossy(&done.stdout.head), "started\nasked\n", "{choice:?}");
    }
}

/// Enough at once that a lock or a blocked thread would show.
async fn many(count: usize, at_once: usize) {
    let lines = [HOLDS_PIPE, IGNORES_TERM, DAEMON, DAEMON_THAT_IGNORES, OUTLIVES];
    let benches: Vec<_> =
        sandboxes().into_iter().map(|choice| std::sync::Arc::new(ExecFixture::new(choice))).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..count {
        if tasks.len() >= at_once {
            tasks.join_next().await.unwrap().unwrap();
        }
        let bench = std::sync::Arc::clone(&benches[number % benches.len()]);
        let line = lines[number / benches.len() % lines.len()];
        tasks.spawn(async move { run(&bench, line, Duration::from_secs(2)).await });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    for bench in benches {
        assert_eq!(bench.leftover_processes(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_bad_programs_end_in_time_and_leave_nothing() {
    many(60, 20).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a minute or more"]
async fn a_thousand_bad_programs_end_in_time_and_leave_nothing() {
    many(1_000, 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_program_does_not_hold_up_others() {
    let bench = ExecFixture::new(SandboxChoice::Auto);
    let slow: Vec<_> = (0..16).map(|_| bench.exec.run(bench.job("sleep 30"))).collect();
    let slow = slow.into_iter().map(|run| tokio::time::timeout(Duration::from_secs(3), run));
    let quick = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let begun = Instant::now();
        assert_eq!(bench.output_of("echo hello").await, "hello");
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    };
    let mut waiting = Box::pin(async {
        let mut tasks = Vec::new();
        for run in slow {
            tasks.push(Box::pin(run));
        }
        for task in &mut tasks {
            let _ = task.await;
        }
    });
    tokio::select! {
        () = quick => {}
        () = &mut waiting => panic!("the slow ones ended first"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_call_ends_everything() {
    for choice in sandboxes() {
        for line in [IGNORES_TERM, DAEMON_THAT_IGNORES, "sleep 60 & sleep 60"] {
            let bench = ExecFixture::new(choice);
            {
                let run = bench.exec.run(bench.job(line));
                tokio::pin!(run);
                let mut tries = 0;
                while !bench.leftover_processes().iter().any(|process| process.contains("sleep 60"))
                    || tries < 20
                {
                    assert!(
                        tokio::time::timeout(Duration::from_millis(10), &mut run).await.is_err(),
                        "{line}"
                    );
                    tries += 1;
                    assert!(tries < 1_000, "{choice:?}: {line} never started");
                }
            }
            bench.assert_nothing_left(Duration::from_secs(2)).await;
            let scratch = bench.folder.path().join("state/exec");
            wait_until("the scratch folder is gone", || {
                std::fs::read_dir(&scratch).map_or(0, Iterator::count) == 0
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_multiplies_is_ended() {
    for choice in sandboxes() {
        let bench = ExecFixture::with(choice, |spec| spec.limits.processes = 40);
        // Bounded by itself as well: the kernel does not count the processes of root.
        let line = "i=0; while [ $i -lt 400 ]; do sleep 30 & i=$((i+1)); done; wait";
        let begun = Instant::now();
        let done = bench.exec.run(bench.job(line)).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(8), "{choice:?}: {:?}", begun.elapsed());
        // Where the kernel counts, the shell gives up by itself.
        assert!(
            done.limit == Some(ExceededLimit::Processes) || done.exit == Exit::Code(2),
            "{choice:?}: {:?}",
            done.exit
        );
        assert_eq!(bench.leftover_processes(), Vec::<String>::new(), "{choice:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn within_its_bound_a_program_may_multiply() {
    let bench = ExecFixture::with(SandboxChoice::Auto, |spec| spec.limits.processes = 40);
    assert_eq!(
        bench.output_of("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.3 & done; wait; echo fine").await,
        "fine"
    );
}

/// Runs programs until it is killed.
#[test]
#[ignore = "a process that another test starts and kills"]
fn hub_that_dies() {
    let Ok(mark) = std::env::var("OCTO_TEST_HUB_MARK") else { return };
    let choice = match std::env::var("OCTO_TEST_HUB_SANDBOX").unwrap().as_str() {
        "None" => SandboxChoice::None,
        "Landlock" => SandboxChoice::Landlock,
        _ => SandboxChoice::Bubblewrap,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut bench = ExecFixture::new(choice);
        bench.mark = mark;
        let runs = [IGNORES_TERM, DAEMON_THAT_IGNORES].map(|line| {
            let mut job = bench.job(line);
            job.timeout = Duration::from_secs(60);
            bench.exec.run(job)
        });
        let [one, two] = runs;
        let _ = tokio::join!(one, two);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_hub_is_killed_its_programs_end() {
    for choice in sandboxes() {
        let mark = format!("octo-hub-{}-{choice:?}", std::process::id());
        let folder = tempfile::tempdir().unwrap();
        let mut hub = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ends::hub_that_dies", "--ignored", "--nocapture"])
            .env("OCTO_TEST_HUB_MARK", &mark)
            .env("OCTO_TEST_HUB_SANDBOX", format!("{choice:?}"))
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let hub_id = format!("{}: ", hub.id());
        let others = || {
            processes_with_mark(&mark)
                .into_iter()
                .filter(|process| !process.starts_with(&hub_id))
                .collect::<Vec<_>>()
        };
        wait_until("both programs sleep", || {
            others().iter().filter(|process| process.contains("sleep 60")).count() >= 3
        })
        .await;
        hub.kill().unwrap();
        hub.wait().unwrap();
        let begun = Instant::now();
        wait_until("everything has ended", || others().is_empty()).await;
        assert!(begun.elapsed() < Duration::from_secs(2), "{choice:?}: {:?}", begun.elapsed());
    }
}
