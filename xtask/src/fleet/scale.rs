//! Calls per second with one, two and three fronts, each limited to a part of a core.

use crate::fleet::fleet_options::FleetOptions;
use crate::fleet::front_client::FrontClient;
use crate::fleet::node_process::own_cpu_seconds;
use crate::fleet::running_fleet::RunningFleet;
use crate::fleet::stop_signal::StopSignal;
use anyhow::{Context, Result, ensure};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const DEFAULT_FRONT_CPU: f64 = 0.2;
const FRONTS: u8 = 3;
const CLIENTS_PER_FRONT: usize = 8;
const MIN_RATIO: f64 = 2.5;
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
const TOOL: &str = "time_now";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protocol {
    Rest,
    Mcp,
}

const PROTOCOLS: [Protocol; 2] = [Protocol::Rest, Protocol::Mcp];

struct Measurement {
    protocol: Protocol,
    fronts: usize,
    calls_per_second: f64,
    /// Cores in use, by process.
    cores: Vec<(String, f64)>,
    /// Part of the periods in which a front reached its limit.
    throttled: f64,
}

pub fn run(options: &FleetOptions, stop: &StopSignal) -> Result<()> {
    let options = FleetOptions {
        fronts: FRONTS,
        workers: 1,
        nats: Some(1),
        front_cpu: Some(options.front_cpu.unwrap_or(DEFAULT_FRONT_CPU)),
        kinds: Vec::new(),
        ..*options
    };
    let fleet = RunningFleet::start(&options)?;
    let addresses = fleet.front_addresses();
    // Connections, caches and prepared statements are not part of the measurement.
    for protocol in PROTOCOLS {
        measure(&fleet, &addresses, protocol, Duration::from_secs(1))?;
    }
    let mut measurements = Vec::new();
    for _ in 0..options.rounds {
        for count in 1..=addresses.len() {
            for protocol in PROTOCOLS {
                stop.check()?;
                let fronts = addresses.get(..count).context("no fronts")?;
                measurements.push(measure(&fleet, fronts, protocol, options.time)?);
            }
        }
    }
    report(&measurements)
}

fn measure(
    fleet: &RunningFleet,
    fronts: &[SocketAddr],
    protocol: Protocol,
    time: Duration,
) -> Result<Measurement> {
    let [periods, throttled] = periods(fleet)?;
    let before = cpu_seconds(fleet)?;
    let started = Instant::now();
    let calls = std::thread::scope(|scope| {
        let clients = fronts.iter().flat_map(|front| std::iter::repeat_n(*front, CLIENTS_PER_FRONT));
        let token = &fleet.token;
        let clients: Vec<_> =
            clients.map(|front| scope.spawn(move || count_calls(front, token, protocol, time))).collect();
        let counts = clients.into_iter().map(|client| client.join().ok().context("a client failed")?);
        counts.sum::<Result<u32>>()
    })?;
    let elapsed = started.elapsed().as_secs_f64();
    let after = cpu_seconds(fleet)?;
    let cores =
        before.into_iter().zip(after).map(|((name, from), (_, to))| (name, (to - from) / elapsed)).collect();
    let [periods_after, throttled_after] = self::periods(fleet)?;
    let part = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    Ok(Measurement {
        protocol,
        fronts: fronts.len(),
        calls_per_second: f64::from(calls) / elapsed,
        cores,
        throttled: part(throttled_after - throttled) / part((periods_after - periods).max(1)),
    })
}

/// Periods of all fronts, and those of them in which a front reached its limit.
fn periods(fleet: &RunningFleet) -> Result<[u64; 2]> {
    let mut sum = [0, 0];
    for limit in &fleet.front_limits {
        let [periods, throttled] = limit.periods()?;
        sum = [sum[0] + periods, sum[1] + throttled];
    }
    Ok(sum)
}

fn cpu_seconds(fleet: &RunningFleet) -> Result<Vec<(String, f64)>> {
    let processes =
        fleet.fronts.iter().chain(&fleet.nats).chain(&fleet.database.servers).chain(&fleet.workers);
    let times = processes.map(|process| Ok((process.node().to_owned(), process.cpu_seconds()?)));
    times.chain([own_cpu_seconds().map(|seconds| ("clients".to_owned(), seconds))]).collect()
}

fn count_calls(front: SocketAddr, token: &str, protocol: Protocol, time: Duration) -> Result<u32> {
    let mut client = FrontClient::connect(front, token, REPLY_TIMEOUT)?;
    let end = Instant::now() + time;
    let mut calls = 0;
    while Instant::now() < end {
        let (reply, is_good) = match protocol {
            Protocol::Rest => {
                let reply = client.call(TOOL, &serde_json::json!({}), None)?;
                let is_good = reply.get("success") == Some(&true.into());
                (reply, is_good)
            }
            Protocol::Mcp => {
                let reply = client.call_mcp(TOOL)?;
                let is_good = reply.pointer("/result/content").is_some();
                (reply, is_good)
            }
        };
        ensure!(is_good, "a call failed: {reply}");
        calls += 1;
    }
    Ok(calls)
}

fn report(measurements: &[Measurement]) -> Result<()> {
    let names = measurements.first().map(|first| first.cores.iter().map(|(name, _)| name.as_str()));
    let names: Vec<&str> = names.into_iter().flatten().collect();
    println!("| protocol | fronts | calls/s | at the limit | cores: {} |", names.join(" | "));
    println!("|---|---|---|---|{}", "---|".repeat(names.len()));
    let mut ratios = Vec::new();
    for protocol in PROTOCOLS {
        let rate = |fronts: usize| {
            let same = measurements.iter().filter(|one| one.protocol == protocol && one.fronts == fronts);
            let same: Vec<&Measurement> = same.collect();
            let count = f64::from(u32::try_from(same.len()).unwrap_or(1).max(1));
            let mean = |value: &dyn Fn(&Measurement) -> f64| {
                same.iter().map(|measurement| value(measurement)).sum::<f64>() / count
            };
            let cores =
                (0..names.len()).map(|at| mean(&|one| one.cores.get(at).map_or(0.0, |(_, cores)| *cores)));
            let cores: Vec<String> = cores.map(|cores| format!("{cores:.2}")).collect();
            let rate = mean(&|one| one.calls_per_second);
            let throttled = mean(&|one| one.throttled) * 100.0;
            println!("| {protocol:?} | {fronts} | {rate:.0} | {throttled:.0} % | {} |", cores.join(" | "));
            rate
        };
        let rates: Vec<f64> = (1..=usize::from(FRONTS)).map(rate).collect();
        if let [one, .., all] = rates.as_slice() {
            ratios.push((protocol, all / one));
        }
    }
    for (protocol, ratio) in &ratios {
        println!(
            "{protocol:?}: {FRONTS} fronts make {ratio:.2} times the calls of one (at least {MIN_RATIO})"
        );
    }
    let is_enough = ratios.iter().all(|(_, ratio)| *ratio >= MIN_RATIO);
    ensure!(is_enough, "fronts do not add up: see above which process has no processor time left");
    Ok(())
}
