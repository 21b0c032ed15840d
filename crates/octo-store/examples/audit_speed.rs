//! Measures the CPU time of the audit log per call: `cargo run --profile bench -p octo-store --example
//! audit_speed`.
//! Arguments: tasks (16), seconds (5), microseconds of other work in each call (0).

#![expect(clippy::disallowed_methods, reason = "reads its own arguments and /proc/self")]

use octo_model::{CallId, Caller, Frontend, Method};
use octo_ports::{AuditLog, CallEnded, CallStarted, Outcome};
use octo_store::{Options, Store, sqlite};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn opening(id: CallId, digest: &str) -> CallStarted {
    CallStarted {
        id,
        principal: Caller::local().principal,
        frontend: Frontend::Http,
        profile: "default".to_owned(),
        method: Method::CallTool.into(),
        name: "time_now".to_owned(),
        arguments: digest.to_owned(),
        shown: None,
        trace: Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned()),
    }
}

fn closing(id: CallId) -> CallEnded {
    CallEnded {
        id,
        target: Some("time/time_now".to_owned()),
        rule: Some("local-may-read".to_owned()),
        outcome: Outcome::Ok,
        micros: 87,
        bytes: 312,
        result_handle: None,
        arguments: None,
    }
}

/// Other work of a call: number of rounds for a given time on an idle machine.
#[derive(Clone, Copy)]
struct Work {
    rounds: u64,
}

impl Work {
    fn of(micros: u64) -> Self {
        let sample = Self { rounds: 1 << 22 };
        let began = Instant::now();
        sample.spin();
        let each = began.elapsed().as_secs_f64() * 1e6 / sample.rounds as f64;
        Self { rounds: (micros as f64 / each) as u64 }
    }

    fn spin(self) {
        (0..self.rounds).for_each(|round| {
            std::hint::black_box(round);
        });
    }
}

/// CPU time in microseconds of the threads whose names have this prefix.
fn processor(threads: &str) -> Result<f64, Box<dyn Error>> {
    let mut nanos = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let thread = thread?.path();
        if std::fs::read_to_string(thread.join("comm"))?.starts_with(threads) {
            let stat = std::fs::read_to_string(thread.join("schedstat"))?;
            nanos += stat.split_whitespace().next().ok_or("no time")?.parse::<u64>()?;
        }
    }
    Ok(nanos as f64 / 1000.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let tasks: usize = args.next().map_or(Ok(16), |arg| arg.parse())?;
    let seconds: u64 = args.next().map_or(Ok(5), |arg| arg.parse())?;
    let work = Work::of(args.next().map_or(Ok(0), |arg| arg.parse())?);
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(tasks, seconds, work))
}

async fn run(tasks: usize, seconds: u64, work: Work) -> Result<(), Box<dyn Error>> {
    let alone = baseline(tasks, work).await?;
    let dir = tempfile::tempdir()?;
    let store = Arc::new(Store::open(dir.path(), Options::default())?);
    let stop = Arc::new(AtomicBool::new(false));
    let (began, before) = (Instant::now(), processor("")?);
    let running: Vec<_> =
        (0..tasks).map(|_| tokio::spawn(calls(Arc::clone(&store), Arc::clone(&stop), work))).collect();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    let mut waits = Vec::new();
    for task in running {
        waits.extend(task.await??);
    }
    store.flush().await?;
    let (wall, cpu, threads) = (began.elapsed(), processor("")? - before, processor("octo-")?);
    waits.sort_unstable();
    let pairs = waits.len();
    let commits = store.commits();
    let at = |share: f64| waits.get((pairs as f64 * share) as usize).copied().unwrap_or_default();
    println!("{tasks} tasks: {pairs} calls in {wall:.2?}, {:.0}/s", pairs as f64 / wall.as_secs_f64());
    println!(
        "{:.2} µs of CPU time per open+close, {:.2} of them in threads of the store ({alone:.2} more elsewhere)",
        cpu / pairs as f64 - alone,
        threads / pairs as f64
    );
    println!("{:.1} records per commit", pairs as f64 * 2.0 / commits as f64);
    println!(
        "open waits: median {:?}, p99 {:?}, p99.9 {:?}, most {:?}",
        at(0.5),
        at(0.99),
        at(0.999),
        at(0.999_999_9)
    );
    drop(store);
    let walk = Instant::now();
    let verified = sqlite(dir.path(), Options::default())?.audit_reader.verify(&[]).await?;
    let records: u64 = verified.iter().map(|verified| verified.records).sum();
    println!("{records} records verified in {:.2?}", walk.elapsed());
    Ok(())
}

/// CPU time per call of the same loop without recording.
async fn baseline(tasks: usize, work: Work) -> Result<f64, Box<dyn Error>> {
    const CALLS: usize = 1 << 17;
    let before = processor("")?;
    let running: Vec<_> = (0..tasks).map(|_| tokio::spawn(idle(CALLS / tasks, work))).collect();
    for task in running {
        task.await?;
    }
    Ok((processor("")? - before) / CALLS as f64)
}

async fn idle(calls: usize, work: Work) {
    for _ in 0..calls {
        let id = CallId::fresh();
        std::hint::black_box((opening(id, DIGEST), Instant::now().elapsed()));
        tokio::task::yield_now().await;
        work.spin();
        std::hint::black_box(closing(id));
    }
}

async fn calls(
    store: Arc<Store>,
    stop: Arc<AtomicBool>,
    work: Work,
) -> Result<Vec<Duration>, octo_model::ToolError> {
    let mut waits = Vec::with_capacity(1 << 20);
    while !stop.load(Ordering::Relaxed) {
        let id = CallId::fresh();
        let began = Instant::now();
        store.open(opening(id, DIGEST)).await?;
        waits.push(began.elapsed());
        work.spin();
        store.close(closing(id));
    }
    Ok(waits)
}
