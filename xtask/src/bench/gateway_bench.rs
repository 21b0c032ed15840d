//! Cost of sixty servers and two thousand tools: each call against a hub with one server, and the list against the same
//! bytes from a plain axum handler, in turn.

mod tools_list;

use super::server_processes::{ServerProcess, free_port};
use super::{Bench, bench_report, build_tools, cargo, prepare, target_dir};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const SERVER_COUNT: usize = 60;
/// Tools of each server except the called one, so that there are two thousand in total.
const TOOLS_PER_SERVER: usize = 34;

pub fn run(root: &Path, seconds: &str, rounds: &str) -> Result<()> {
    let bench = prepare(root, seconds, rounds)?;
    cargo(root, &["build", "--profile", "measured", "-p", "mcp-fixture", "--locked"])?;
    measure(&bench)
}

/// The same with existing binaries. Results of an unoptimized build mean nothing, but it shows that the benchmark
/// works.
pub fn run_built(root: &Path, folder: &Path, seconds: &str, rounds: &str) -> Result<()> {
    let work = target_dir(root).join("bench");
    std::fs::create_dir_all(&work)?;
    build_tools(root, &work)?;
    // Each program is started in its own directory.
    measure(&Bench::with_binaries(work, &folder.canonicalize()?, seconds, rounds))
}

fn measure(bench: &Bench) -> Result<()> {
    let crowd = start_many_tools_server(&bench.octoprox_bin)?;
    let echo = bench.start_echo()?;
    let one = bench.start_hub("one", &settings(&echo, None))?;
    let sixty = bench.start_hub("sixty", &settings(&echo, Some(&crowd)))?;
    let tools = wait_until_listed(&sixty)?;
    println!("{SERVER_COUNT} servers, {tools} tools, of which {} are native", wait_until_listed(&one)? - 3);
    let measured = bench.run_load(
        &[("direct", &echo, "/mcp"), ("one", &one, "/mcp"), ("sixty", &sixty, "/mcp")],
        &["--protocol", "2026-07-28"],
    )?;
    println!("\n| measurement | one server | sixty | ratio | target |\n|---|---|---|---|---|");
    for sessions in [1, 16] {
        print_calls(&measured, sessions)?;
    }
    tools_list::compare_with_baseline(bench, &sixty, bench.rounds.parse()?)?;
    println!(
        "\nResident: {:.1} MB with one server, {:.1} MB with sixty.",
        hub_memory(&one)?,
        hub_memory(&sixty)?
    );
    Ok(())
}

fn hub_memory(hub: &ServerProcess) -> Result<f64> {
    super::server_processes::resident_mb(hub.process.id())
}

/// One program that lists many tools; every entry but one uses it.
fn start_many_tools_server(beside: &Path) -> Result<ServerProcess> {
    let port = free_port()?;
    let mut command = Command::new(beside.with_file_name("mcp-fixture"));
    command.args([
        "http",
        &port.to_string(),
        "modern",
        "--pages",
        "1",
        "--per-page",
        &TOOLS_PER_SERVER.to_string(),
    ]);
    ServerProcess::start(command, port)
}

/// Settings with the called server, and with the others if there are any.
fn settings(echo: &ServerProcess, crowd: Option<&ServerProcess>) -> String {
    let entry = |server: &ServerProcess| json!({"url": format!("http://127.0.0.1:{}/mcp", server.port), "era": "modern"});
    let mut servers = serde_json::Map::new();
    // The load generator looks for it on the first page of the list.
    servers.insert("called".to_owned(), entry(echo));
    for number in (1..SERVER_COUNT).filter_map(|number| crowd.map(|crowd| (number, crowd))) {
        servers.insert(format!("other{:02}", number.0), entry(number.1));
    }
    json!({"admin": {"enabled": false}, "servers": servers}).to_string()
}

/// Waits until everything is listed, and returns the number of tools.
fn wait_until_listed(hub: &ServerProcess) -> Result<usize> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut before = 0;
    loop {
        let pages = tools_list::fetch_pages(hub.port)?;
        let tools = pages.iter().map(|page| page.tools).sum();
        if tools == before && tools > 3 {
            return Ok(tools);
        }
        before = tools;
        ensure!(Instant::now() < deadline, "the list did not settle");
        std::thread::sleep(Duration::from_secs(3));
    }
}

/// One result of one target. Fails if calls failed.
fn load_figure(measured: &Value, target: &str, sessions: u64, name: &str) -> Result<f64> {
    let rows = measured.as_array().context("mcp-load returned no rows")?;
    let row = rows.iter().find(|row| row["target"] == target && row["sessions"] == sessions);
    let row = row.with_context(|| format!("no {target} at {sessions}: {measured}"))?;
    ensure!(row["errors"] == 0, "{target} at {sessions}: {row}");
    row.get(name).and_then(Value::as_f64).with_context(|| format!("no {name}: {row}"))
}

/// Rates are relative to the direct one in the same round; the overhead is the time beyond a direct call. CPU time is
/// the most stable figure on a busy machine.
fn print_calls(measured: &Value, sessions: u64) -> Result<()> {
    let both = |name: &str| -> Result<[f64; 2]> {
        Ok([load_figure(measured, "one", sessions, name)?, load_figure(measured, "sixty", sessions, name)?])
    };
    let rates = both("rate_ratio")?;
    for (what, [one, sixty], promised) in [
        ("calls, relative to direct", rates, "–"),
        ("overhead per call, relative to a direct call", rates.map(|rate| 1.0 / rate - 1.0), "at most 1.1"),
        ("CPU time per call in µs", both("cpu_us_per_call")?, "at most 1.1"),
    ] {
        println!("| {sessions} sessions: {what} | {one:.3} | {sixty:.3} | {:.3} | {promised} |", sixty / one);
    }
    Ok(())
}

impl Bench {
    /// Serves these bytes and does nothing else.
    fn start_baseline(&self, bytes: &[u8]) -> Result<ServerProcess> {
        let file = self.work_dir.join("plain.json");
        std::fs::write(&file, bytes)?;
        let port = free_port()?;
        let mut command = Command::new(&self.baseline_bin);
        command.arg(port.to_string()).arg(&file).arg(&file);
        ServerProcess::start(command, port)
    }
}

/// Median of interleaved ratios.
fn median_of(ratios: &[f64]) -> f64 {
    bench_report::median(ratios.to_vec())
}
