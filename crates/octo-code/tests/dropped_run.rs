//! A run that is dropped leaves nothing behind: no process, and no call.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, which look at the processes of the system"
)]

mod code_fixture;

use code_fixture::{TIME_MS, TestTools, bindings, child, run_with};
use octo_code::{ChildCommand, CodeLimits, Program, run_program};
use std::path::Path;
use std::time::Duration;

const MAX_WAIT: Duration = Duration::from_secs(60);

async fn wait_until(is_true: impl Fn() -> bool) {
    let waiting = async {
        while !is_true() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(MAX_WAIT, waiting).await.expect("it does not become true");
}

/// Runs a program until a condition is true, and drops it.
async fn drop_when<T>(run: impl Future<Output = T>, is_enough: impl Fn() -> bool) {
    tokio::select! {
        _ = run => panic!("the program ended"),
        () = wait_until(is_enough) => {}
    }
}

fn niceness(pid: u32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok()
}

#[tokio::test]
async fn its_calls_are_cancelled() {
    let (tools, limits) = (TestTools::default(), CodeLimits::default());
    let source = "await tools.echo({}); await Promise.all([tools.never({}), tools.never({})])";
    drop_when(run_with(source, &tools, &limits), || tools.counts() == (3, 1, 1)).await;
    assert_eq!(tools.counts(), (3, 3, 1), "calls begun, over and answered");
}

#[tokio::test]
async fn its_process_has_a_low_priority_and_is_killed() {
    for (number, source) in ["for (;;) {}", "await tools.never({})"].iter().enumerate() {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}", std::process::id()));
        // The shell becomes the process of the program.
        let script = "echo $$ > \"$0\"; exec \"$1\"".to_owned();
        let paths = [&file, &child().program].map(|path| path.to_string_lossy().into_owned());
        let args = ["-c".to_owned(), script].into_iter().chain(paths).collect();
        let command = ChildCommand { program: "/bin/sh".into(), args };
        let (bindings, tools) = (bindings(), TestTools::default());
        let program = Program { source, tools: &bindings, time_ms: TIME_MS };
        let limits = CodeLimits { cpu_seconds: 60, ..CodeLimits::default() };
        let pid = || std::fs::read_to_string(&file).ok()?.trim().parse::<u32>().ok();
        let status = || std::fs::read_to_string(format!("/proc/{}/status", pid()?)).ok();
        let is_sandboxed = || status().is_some_and(|status| status.contains("Seccomp:\t2"));
        let is_nice = || pid().and_then(niceness) == Some(10);
        drop_when(run_program(&command, &program, &tools, &limits), || is_sandboxed() && is_nice()).await;
        // One that nobody has waited for yet is dead, and has no memory.
        wait_until(|| !status().is_some_and(|status| status.contains("VmRSS"))).await;
        std::fs::remove_file(&file).unwrap();
    }
}
