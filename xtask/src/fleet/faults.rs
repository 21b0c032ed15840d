//! Faults under load. Clients record what they do and what they are told; a checker compares that with what happened.

mod call_history;
mod fault_kind;
mod faults_report;
mod history_check;
mod load_client;
mod recorded_effects;
pub mod rolling_upgrade;
mod seeded_random;

use crate::fleet::fake_clock;
use crate::fleet::fleet_options::FleetOptions;
use crate::fleet::front_client::FrontClient;
use crate::fleet::running_fleet::RunningFleet;
use crate::fleet::stop_signal::StopSignal;
use anyhow::{Context, Result, ensure};
use call_history::{CallRecord, HistoryWriter, now_ms};
use fault_kind::{FaultInjector, FaultKind};
use faults_report::Injection;
use history_check::check;
use load_client::{APPEND_FILE, CALL_DEADLINE, LoadClient, WORKFLOW, WORKFLOW_PATH};
use seeded_random::SeededRandom;
use serde_json::json;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Within which all fronts have to answer again.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(90);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// Load without faults between two of them.
const CALM_TIME: Duration = Duration::from_secs(2);
const DEFAULT_NATS: u8 = 3;
const PROBE_FILE: &str = "probe.txt";

pub fn run(root: &Path, options: &FleetOptions, stop: &StopSignal) -> Result<()> {
    let records = create_records(root)?;
    let kinds = options.kinds.iter().map(|name| FaultKind::from_name(name)).collect::<Result<Vec<_>>>()?;
    let mut kinds = if kinds.is_empty() { FaultKind::ALL.to_vec() } else { kinds };
    if !fake_clock::is_installed() {
        println!("faketime is not installed: no clock is set");
        kinds.retain(|kind| !kind.needs_fake_clock());
    }
    if options.databases > 1 {
        // Patroni starts the servers.
        kinds.retain(|kind| *kind != FaultKind::JumpPostgresClock);
    }
    let fake_clocks = kinds.iter().any(|kind| kind.needs_fake_clock());
    let nats = Some(options.nats.unwrap_or(DEFAULT_NATS));
    let mut fleet = RunningFleet::start(&FleetOptions { nats, fake_clocks, kinds: Vec::new(), ..*options })?;
    prepare_workspaces(&fleet)?;
    let injections = run_under_load(&mut fleet, options, &records, |fleet| {
        inject_all(fleet, options, &kinds, &records, stop)
    })?;
    check_histories(&fleet, options, &records, &injections).map(drop)
}

fn create_records(root: &Path) -> Result<PathBuf> {
    let records = crate::bench::target_dir(root).join("fleet");
    let _ = fs::remove_dir_all(&records);
    fs::create_dir_all(&records)?;
    Ok(records)
}

fn prepare_workspaces(fleet: &RunningFleet) -> Result<()> {
    fs::write(fleet.folder.front_workspace().join(WORKFLOW_PATH), WORKFLOW)?;
    fs::write(fleet.folder.workspace().join(PROBE_FILE), "probe\n")?;
    fs::write(fleet.folder.workspace().join(APPEND_FILE), "")?;
    wait_for_recovery(&fleet.front_addresses(), &fleet.token).map(drop)
}

/// Compares what clients were told with what happened, and returns their calls.
fn check_histories(
    fleet: &RunningFleet,
    options: &FleetOptions,
    records: &Path,
    injections: &[Injection],
) -> Result<Vec<CallRecord>> {
    let mut effects = recorded_effects::collect(fleet)?;
    effects.suspensions = injections.iter().filter_map(Injection::suspension).collect();
    let mut calls = Vec::new();
    for number in 0..options.clients {
        calls.extend(call_history::parse(&fs::read_to_string(history_path(records, number))?)?);
    }
    let checked = check(&calls, &effects, CALL_DEADLINE);
    let audit = fleet.octoprox(&["audit", "verify"]);
    faults_report::print(injections, &calls, &checked);
    print!("{}", audit.context("the audit log")?);
    println!("histories: {}", records.display());
    ensure!(checked.violations.is_empty(), "{} violations", checked.violations.len());
    Ok(calls)
}

fn history_path(records: &Path, number: usize) -> PathBuf {
    records.join(format!("history-{number}.jsonl"))
}

/// Runs `work` while clients call, and keeps their histories and the logs.
fn run_under_load<T>(
    fleet: &mut RunningFleet,
    options: &FleetOptions,
    records: &Path,
    work: impl FnOnce(&mut RunningFleet) -> Result<T>,
) -> Result<T> {
    let (fronts, token, ended) = (fleet.front_addresses(), fleet.token.clone(), AtomicBool::new(false));
    let outcome = std::thread::scope(|scope| {
        let mut clients = Vec::new();
        for number in 0..options.clients {
            let history = HistoryWriter::create(&history_path(records, number))?;
            let random = SeededRandom::new(options.seed.wrapping_mul(1_000) + u64::try_from(number)?);
            let client = LoadClient { number, fronts: &fronts, token: &token, random, history };
            clients.push(scope.spawn(|| client.run(&ended)));
        }
        let outcome = work(fleet);
        ended.store(true, Ordering::Release);
        for client in clients {
            client.join().ok().context("a client failed")??;
        }
        outcome
    });
    save_logs(fleet, records)?;
    outcome
}

fn inject_all(
    fleet: &mut RunningFleet,
    options: &FleetOptions,
    kinds: &[FaultKind],
    records: &Path,
    stop: &StopSignal,
) -> Result<Vec<Injection>> {
    let (fronts, token) = (fleet.front_addresses(), fleet.token.clone());
    let mut random = SeededRandom::new(options.seed);
    let mut injections = Vec::new();
    let mut timeline = String::new();
    let mut injector = FaultInjector { fleet, random: SeededRandom::new(options.seed), stop };
    let mut round = Vec::new();
    for number in 1..=options.injections {
        stop.sleep(CALM_TIME)?;
        if round.is_empty() {
            round = kinds.to_vec();
            random.shuffle(&mut round);
        }
        let kind = round.pop().context("no kinds of faults")?;
        let start_ms = now_ms();
        let target = injector.inject(kind).with_context(|| kind.name())?;
        let end_ms = now_ms();
        let recovery = wait_for_recovery(&fronts, &token).with_context(|| kind.name())?;
        println!("{number:3} {:22} {target:16} recovered after {:.1} s", kind.name(), recovery.as_secs_f64());
        let line = json!({"fault": kind.name(), "target": target, "start": start_ms, "end": end_ms});
        timeline += &format!("{line}\n");
        fs::write(records.join("faults.jsonl"), &timeline)?;
        injections.push(Injection { kind, target, start_ms, end_ms, recovered_ms: now_ms(), recovery });
    }
    stop.sleep(CALM_TIME)?;
    Ok(injections)
}

/// Waits until every front reads from the worker and from the database.
fn wait_for_recovery(fronts: &[SocketAddr], token: &str) -> Result<Duration> {
    let started = Instant::now();
    let probes = [
        ("fs_read_text", json!({"path": PROBE_FILE})),
        ("shell_exec", json!({"command": "true"})),
        ("memory_query", json!({"query": "probe", "max_results": 1})),
    ];
    for front in fronts {
        for (tool, arguments) in &probes {
            let mut last = String::new();
            let mut is_answered = || {
                let reply = FrontClient::connect(*front, token, PROBE_TIMEOUT)
                    .and_then(|mut client| client.call(tool, arguments, Some(PROBE_TIMEOUT)));
                last = reply.as_ref().map_or_else(|error| format!("{error:#}"), ToString::to_string);
                reply.is_ok_and(|reply| reply.get("success") == Some(&true.into()))
            };
            while !is_answered() {
                ensure!(started.elapsed() < RECOVERY_TIMEOUT, "{tool} at {front} does not recover: {last}");
                std::thread::sleep(PROBE_INTERVAL);
            }
        }
    }
    Ok(started.elapsed())
}

/// Keeps what the fleet removes when it ends.
fn save_logs(fleet: &RunningFleet, records: &Path) -> Result<()> {
    for folder in [fleet.folder.0.clone(), fleet.folder.workspace()] {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "log")
                && let Some(name) = path.file_name()
            {
                fs::copy(&path, records.join(name))?;
            }
        }
    }
    Ok(())
}
