//! Measures what a program costs. Run it with `cargo test --profile measured -p octo-code -- --ignored start_time`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod code_fixture;

use code_fixture::run;
use std::time::{Duration, Instant};

const RUNS: usize = 200;

/// Median and 95th percentile.
async fn percentiles(source: &str, runs: usize) -> (Duration, Duration) {
    let mut times = Vec::new();
    for _ in 0..runs {
        let began = Instant::now();
        run(source).await.unwrap();
        times.push(began.elapsed());
    }
    times.sort();
    (times[runs / 2], times[runs * 95 / 100])
}

#[tokio::test]
#[ignore = "a measurement"]
async fn start_time() {
    for (what, source) in [
        ("return 1", "return 1"),
        ("TypeScript", "interface A { b: number }\nconst a: A = { b: 1 };\nreturn a.b as number"),
        ("100 calls in a row", "for (let i = 0; i < 100; i++) await tools.echo({ i })"),
        ("100 calls together", "await Promise.all([...Array(100).keys()].map(i => tools.echo({ i })))"),
        ("result of 1.1 MB", "return (await tools.rows({ count: 50000 })).length"),
    ] {
        let (median, slow) = percentiles(source, RUNS).await;
        println!("{what}: p50 {median:?}, p95 {slow:?}");
    }
}
