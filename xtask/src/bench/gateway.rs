//! What sixty servers and two thousand tools cost: each call beside a hub with one server, and the list beside the same bytes
//! from a plain axum handler, in turn.

mod lists;

use super::servers::{Running, free_port};
use super::{Bench, cargo, prepare, report, target, tools};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const SERVERS: usize = 60;
/// Of each server but the one that is called, so that there are two thousand in all.
const TOOLS: usize = 34;

pub fn run(root: &Path, seconds: &str, rounds: &str) -> Result<()> {
    let bench = prepare(root, seconds, rounds)?;
    cargo(root, &["build", "--profile", "measured", "-p", "mcp-fixture", "--locked"])?;
    measure(&bench)
}

/// The same with programs that are there already. Figures of a build that is not optimised say nothing; that it works can be seen.
pub fn run_built(root: &Path, folder: &Path, seconds: &str, rounds: &str) -> Result<()> {
    let work = target(root).join("bench");
    std::fs::create_dir_all(&work)?;
    tools(root, &work)?;
    // Each program is started in a folder of its own.
    measure(&Bench::of(work, &folder.canonicalize()?, seconds, rounds))
}

fn measure(bench: &Bench) -> Result<()> {
    let crowd = crowd(&bench.octoprox)?;
    let echo = bench.echo_server()?;
    let one = bench.hub("one", &settings(&echo, None))?;
    let sixty = bench.hub("sixty", &settings(&echo, Some(&crowd)))?;
    let tools = listed(&sixty)?;
    println!("{SERVERS} servers, {tools} tools, of which {} are the hub's own", listed(&one)? - 3);
    let measured = bench.load(
        &[("direct", &echo, "/mcp"), ("one", &one, "/mcp"), ("sixty", &sixty, "/mcp")],
        &["--protocol", "2026-07-28"],
    )?;
    println!("\n| what | one server | sixty | ratio | promised |\n|---|---|---|---|---|");
    for sessions in [1, 16] {
        calls(&measured, sessions)?;
    }
    lists::compare(bench, &sixty, bench.rounds.parse()?)?;
    println!("\nResident: {:.1} MB with one server, {:.1} MB with sixty.", memory(&one)?, memory(&sixty)?);
    Ok(())
}

fn memory(hub: &Running) -> Result<f64> {
    super::servers::resident_mb(hub.process.id())
}

/// One program that lists many tools; every entry but one leads to it.
fn crowd(beside: &Path) -> Result<Running> {
    let port = free_port()?;
    let mut command = Command::new(beside.with_file_name("mcp-fixture"));
    command.args(["http", &port.to_string(), "modern", "--pages", "1", "--per-page", &TOOLS.to_string()]);
    Running::start(command, port)
}

/// Settings with the one server that is called, and with the others if there are any.
fn settings(echo: &Running, crowd: Option<&Running>) -> String {
    let entry =
        |server: &Running| json!({"url": format!("http://127.0.0.1:{}/mcp", server.port), "era": "modern"});
    let mut servers = serde_json::Map::new();
    // The load generator looks for it on the first page of the list.
    servers.insert("called".to_owned(), entry(echo));
    for number in (1..SERVERS).filter_map(|number| crowd.map(|crowd| (number, crowd))) {
        servers.insert(format!("other{:02}", number.0), entry(number.1));
    }
    json!({"admin": {"enabled": false}, "servers": servers}).to_string()
}

/// Waits until everything is listed, and says how many tools that is.
fn listed(hub: &Running) -> Result<usize> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut before = 0;
    loop {
        let pages = lists::pages(hub.port)?;
        let tools = pages.iter().map(|page| page.tools).sum();
        if tools == before && tools > 3 {
            return Ok(tools);
        }
        before = tools;
        ensure!(Instant::now() < deadline, "the list never came to rest");
        std::thread::sleep(Duration::from_secs(3));
    }
}

/// One figure of one target. Calls that fail are no calls.
fn figure(measured: &Value, target: &str, sessions: u64, name: &str) -> Result<f64> {
    let rows = measured.as_array().context("mcp-load gave no rows")?;
    let row = rows.iter().find(|row| row["target"] == target && row["sessions"] == sessions);
    let row = row.with_context(|| format!("no {target} at {sessions}: {measured}"))?;
    ensure!(row["errors"] == 0, "{target} at {sessions}: {row}");
    row.get(name).and_then(Value::as_f64).with_context(|| format!("no {name}: {row}"))
}

/// Rates are parts of the direct one in the same round; the overhead is what a call takes beyond a direct one. The processor's
/// time moves least where the machine has other work, too.
fn calls(measured: &Value, sessions: u64) -> Result<()> {
    let both = |name: &str| -> Result<[f64; 2]> {
        Ok([figure(measured, "one", sessions, name)?, figure(measured, "sixty", sessions, name)?])
    };
    let rates = both("rate_ratio")?;
    for (what, [one, sixty], promised) in [
        ("calls, of direct", rates, "–"),
        ("overhead per call, of a direct call", rates.map(|rate| 1.0 / rate - 1.0), "at most 1.1"),
        ("processor's time per call in µs", both("cpu_us_per_call")?, "at most 1.1"),
    ] {
        println!("| {sessions} sessions: {what} | {one:.3} | {sixty:.3} | {:.3} | {promised} |", sixty / one);
    }
    Ok(())
}

impl Bench {
    /// Serves these bytes and does nothing else.
    fn plain(&self, bytes: &[u8]) -> Result<Running> {
        let file = self.work.join("plain.json");
        std::fs::write(&file, bytes)?;
        let port = free_port()?;
        let mut command = Command::new(&self.bare);
        command.arg(port.to_string()).arg(&file).arg(&file);
        Running::start(command, port)
    }
}

/// The median of ratios that were taken in turn.
fn middle(ratios: &[f64]) -> f64 {
    report::median(ratios.to_vec())
}
