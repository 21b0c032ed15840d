//! Input and output: nothing lost, no hang, constant memory.

use crate::bench::{ExecFixture, sandboxes};
use octo_grants::exec::{Exit, SandboxChoice, Stream};
use std::io::Read;
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn input_and_both_outputs_pass_unchanged() {
    for choice in sandboxes() {
        let bench = ExecFixture::new(choice);
        let mut job = bench.job("cat; echo '> + Error: $ ' >&2; exit 7");
        job.stdin = Some("one\ntwo\0\x1b[31m".into());
        let heard = Arc::new(Mutex::new((Vec::new(), Vec::new())));
        let told = Arc::clone(&heard);
        job.on_output = Some(Box::new(move |stream, bytes| {
            let mut told = told.lock().unwrap();
            match stream {
                Stream::Out => told.0.extend_from_slice(bytes),
                Stream::Err => told.1.extend_from_slice(bytes),
            }
        }));
        let done = bench.exec.run(job).await.unwrap();
        assert_eq!(done.exit, Exit::Code(7));
        assert_eq!(done.stdout.head, b"one\ntwo\0\x1b[31m");
        assert_eq!(done.stderr.head, b"> + Error: $ \n");
        assert_eq!(*heard.lock().unwrap(), (done.stdout.head, done.stderr.head));
        assert_eq!(done.sandbox.as_str(), format!("{choice:?}").to_lowercase());
        assert_eq!(bench.output_of("cat").await, "", "without input there is none to wait for");
    }
}

#[tokio::test]
async fn input_that_nobody_reads_holds_nothing_up() {
    let bench = ExecFixture::new(SandboxChoice::Auto);
    for line in ["true", "sleep 60 & true"] {
        let mut job = bench.job(line);
        job.stdin = Some(vec![b'x'; 10 << 20].into());
        let done = bench.exec.run(job).await.unwrap();
        assert_eq!(done.exit, Exit::Code(0));
        assert!(done.took.as_secs() < 3, "{:?}", done.took);
    }
}

#[tokio::test]
async fn head_tail_and_whole_are_exact() {
    let bench = ExecFixture::new(SandboxChoice::Auto);
    let mut job = bench.job("seq 1 20000; printf 'x%.0s' $(seq 1 50) >&2");
    job.max_output_bytes = 100;
    let done = bench.exec.run(job).await.unwrap();
    let all: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(done.stdout.total, all.len() as u64);
    assert_eq!(done.stdout.head, all.as_bytes()[..50]);
    assert_eq!(done.stdout.tail, all.as_bytes()[all.len() - 50..]);
    let mut whole = String::new();
    done.stdout.full_output.unwrap().read_to_string(&mut whole).unwrap();
    assert_eq!(whole, all);
    assert_eq!(
        (done.stderr.head.len(), done.stderr.tail.len(), done.stderr.full_output.is_none()),
        (50, 0, true)
    );
    assert_eq!(std::fs::read_dir(bench.path("state")).unwrap().count(), 0, "the file has no name");
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1_024
}

#[tokio::test]
async fn fifty_megabytes_in_one_line_take_constant_memory() {
    let bench = ExecFixture::new(SandboxChoice::Auto);
    bench.output_of("true").await;
    let before = resident();
    let mut job = bench.job("head -c 50000000 /dev/zero | tr '\\0' x");
    job.max_output_bytes = 10_000;
    job.timeout = std::time::Duration::from_secs(60);
    let done = bench.exec.run(job).await.unwrap();
    assert_eq!((done.exit, done.stdout.total), (Exit::Code(0), 50_000_000));
    assert_eq!((done.stdout.head.len(), done.stdout.tail.len()), (5_000, 5_000));
    assert_eq!(done.stdout.full_output.unwrap().metadata().unwrap().len(), 50_000_000);
    let grown = resident().saturating_sub(before);
    assert!(grown < 20 << 20, "memory grew by {grown} bytes");
}
