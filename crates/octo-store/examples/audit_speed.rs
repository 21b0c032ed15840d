//! How much processor time the audit takes per call: `cargo run --profile bench -p octo-store --example audit_speed`.
//! Arguments: tasks (16), seconds (5).

#![expect(clippy::disallowed_methods, reason = "reads its own arguments and /proc/self/stat")]

use octo_hub::{Closing, Ledger, Opening, Outcome};
use octo_model::{CallId, Face, Method};
use octo_store::{Options, Store, verify};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn opening(id: CallId, digest: &str) -> Opening {
    Opening {
        id,
        subject: "local".to_owned(),
        tenant: "default".to_owned(),
        face: Face::Http,
        profile: "default".to_owned(),
        method: Method::CallTool,
        name: "time_now".to_owned(),
        arguments: digest.to_owned(),
        trace: Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned()),
    }
}

fn closing(id: CallId) -> Closing {
    Closing {
        id,
        target: Some("time/time_now".to_owned()),
        rule: Some("local-may-read".to_owned()),
        outcome: Outcome::Ok,
        micros: 87,
        bytes: 312,
        spill: None,
    }
}

/// User and system time of this process, all threads.
fn processor() -> Result<Duration, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().ok_or("no fields")?.split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).map(|ticks| ticks.parse().unwrap_or(0)).sum();
    Ok(Duration::from_millis(ticks * 10))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let tasks: usize = args.next().map_or(Ok(16), |arg| arg.parse())?;
    let seconds: u64 = args.next().map_or(Ok(5), |arg| arg.parse())?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(tasks, seconds))
}

async fn run(tasks: usize, seconds: u64) -> Result<(), Box<dyn Error>> {
    let alone = alone(tasks).await?;
    let dir = tempfile::tempdir()?;
    let store = Arc::new(Store::open(dir.path(), Options::default())?);
    let stop = Arc::new(AtomicBool::new(false));
    let (began, before) = (Instant::now(), processor()?);
    let running: Vec<_> =
        (0..tasks).map(|_| tokio::spawn(calls(Arc::clone(&store), Arc::clone(&stop)))).collect();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    let mut waits = Vec::new();
    for task in running {
        waits.extend(task.await??);
    }
    store.flush().await?;
    let (wall, cpu) = (began.elapsed(), processor()?.saturating_sub(before));
    waits.sort_unstable();
    let pairs = waits.len();
    let commits = store.commits();
    let at = |share: f64| waits.get((pairs as f64 * share) as usize).copied().unwrap_or_default();
    println!("{tasks} tasks: {pairs} calls in {wall:.2?}, {:.0}/s", pairs as f64 / wall.as_secs_f64());
    let each = cpu.as_secs_f64() * 1e6 / pairs as f64;
    println!("{each:.2} µs of processor time per open+close, {alone:.2} of them this program's own");
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
    println!("{} records verified in {:.2?}", verify(dir.path(), None)?.records, walk.elapsed());
    Ok(())
}

/// What the same loop takes per call when nothing is recorded.
async fn alone(tasks: usize) -> Result<f64, Box<dyn Error>> {
    const CALLS: usize = 1 << 20;
    let before = processor()?;
    let running: Vec<_> = (0..tasks).map(|_| tokio::spawn(idle(CALLS / tasks))).collect();
    for task in running {
        task.await?;
    }
    Ok(processor()?.saturating_sub(before).as_secs_f64() * 1e6 / CALLS as f64)
}

async fn idle(calls: usize) {
    for _ in 0..calls {
        let id = CallId::fresh();
        std::hint::black_box((opening(id, DIGEST), Instant::now().elapsed()));
        tokio::task::yield_now().await;
        std::hint::black_box(closing(id));
    }
}

async fn calls(store: Arc<Store>, stop: Arc<AtomicBool>) -> Result<Vec<Duration>, octo_model::ToolError> {
    let mut waits = Vec::with_capacity(1 << 20);
    while !stop.load(Ordering::Relaxed) {
        let id = CallId::fresh();
        let began = Instant::now();
        store.open(opening(id, DIGEST)).await?;
        waits.push(began.elapsed());
        store.close(closing(id));
    }
    Ok(waits)
}
