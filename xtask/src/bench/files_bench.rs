//! File tools against ripgrep, and a read against an echo of the same bytes, in turn, as ratios.

mod file_tree;
pub mod stdio_server;

use super::bench_report::median;
use super::{cargo, tool};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use stdio_server::StdioServer;

const ROUNDS: usize = 21;
/// Reads per round: one is too short to measure.
const READS_PER_ROUND: u32 = 50;

pub fn run(root: &Path) -> Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let work = target.join("bench");
    std::fs::create_dir_all(&work)?;
    let rg = Command::new("rg").arg("--version").output();
    rg.context("rg is missing: apt-get install ripgrep")?;
    cargo(root, &["build", "--profile", "measured", "-p", "octoprox", "--locked"])?;
    tool(root, &work, "echo-upstream")?;
    let folder = work.join("tree");
    file_tree::create_tree(&folder)?;
    let state = work.join("files-state");
    let _ = std::fs::remove_dir_all(&state);
    let mut hub = Command::new(target.join("measured/octoprox"));
    hub.arg("stdio").current_dir(&work).env("OCTOPROX_WORKSPACE", &folder).env("OCTOPROX_STATE_DIR", &state);
    hub.env("OCTOPROX_SURFACE", "full");
    let mut hub = StdioServer::start(hub)?;
    let mut echo = Command::new(work.join("tools/release/echo-upstream"));
    echo.arg("stdio");
    let mut echo = StdioServer::start(echo)?;
    println!("\n| measurement | octoprox ms | baseline ms | ratio | target |\n|---|---|---|---|---|");
    print_row("fs_search, relative to rg -n", measure_search(&mut hub, &folder)?, "1.5");
    print_row("fs_glob, relative to rg --files -g", measure_glob(&mut hub, &folder)?, "1.5");
    print_row(
        "fs_read_text of 10 KB, relative to an rmcp echo",
        measure_read(&mut hub, &mut echo, &folder)?,
        "2",
    );
    println!(
        "\nMedians of {ROUNDS} interleaved rounds. The time of rg includes a process start, that of octoprox a message over stdio."
    );
    Ok(())
}

/// Times in milliseconds of both sides, and the ratio of each round.
#[derive(Default)]
struct Times {
    ours: Vec<f64>,
    theirs: Vec<f64>,
    ratios: Vec<f64>,
}

impl Times {
    fn add(&mut self, ours: Duration, theirs: Duration) {
        self.ours.push(ours.as_secs_f64() * 1e3);
        self.theirs.push(theirs.as_secs_f64() * 1e3);
        self.ratios.push(ours.as_secs_f64() / theirs.as_secs_f64());
    }
}

fn print_row(what: &str, times: Times, promised: &str) {
    let (ours, theirs, ratio) = (median(times.ours), median(times.theirs), median(times.ratios));
    println!("| {what} | {ours:.2} | {theirs:.2} | {ratio:.2} | at most {promised} |");
}

/// Runs ripgrep; returns the number of printed lines.
fn run_ripgrep(folder: &Path, args: &[&str]) -> Result<(usize, Duration)> {
    let began = Instant::now();
    let output = Command::new("rg")
        .args(["--no-config", "--no-ignore-global"])
        .args(args)
        .current_dir(folder)
        .output()?;
    let took = began.elapsed();
    ensure!(output.status.success(), "rg {args:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok((output.stdout.iter().filter(|byte| **byte == b'\n').count(), took))
}

/// One more round than counted, to warm up; both must find the same.
fn compare_with_ripgrep(
    hub: &mut StdioServer,
    folder: &Path,
    (tool, arguments, total): (&str, Value, &str),
    args: &[&str],
) -> Result<Times> {
    let mut times = Times::default();
    for round in 0..=ROUNDS {
        let (answer, ours) = hub.call(tool, &arguments)?;
        let (lines, theirs) = run_ripgrep(folder, args)?;
        let found = answer.pointer(&format!("/structuredContent/{total}")).and_then(Value::as_u64);
        ensure!(found == Some(lines as u64) && lines > 0, "{tool} found {found:?}, rg {lines}");
        if round > 0 {
            times.add(ours, theirs);
        }
    }
    Ok(times)
}

fn measure_search(hub: &mut StdioServer, folder: &Path) -> Result<Times> {
    let arguments = json!({"pattern": file_tree::NEEDLE, "max_results": 1000});
    compare_with_ripgrep(hub, folder, ("fs_search", arguments, "total_matches"), &["-n", file_tree::NEEDLE])
}

fn measure_glob(hub: &mut StdioServer, folder: &Path) -> Result<Times> {
    let arguments = json!({"pattern": file_tree::NAME_GLOB, "max_results": 10_000});
    compare_with_ripgrep(
        hub,
        folder,
        ("fs_glob", arguments, "total"),
        &["--files", "-g", file_tree::NAME_GLOB],
    )
}

fn measure_read(hub: &mut StdioServer, echo: &mut StdioServer, folder: &Path) -> Result<Times> {
    let text = std::fs::read_to_string(folder.join(file_tree::TEN_KB_FILE))?;
    let (ours, theirs) = (json!({"path": file_tree::TEN_KB_FILE}), json!({"text": text}));
    let mut times = Times::default();
    for round in 0..=ROUNDS {
        let (mut hub_time, mut echo_time) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..READS_PER_ROUND {
            let (answer, took) = hub.call("fs_read_text", &ours)?;
            ensure!(
                text_equals(&answer, "/structuredContent/content", &text),
                "fs_read_text returned {answer}"
            );
            hub_time += took;
            let (answer, took) = echo.call("echo", &theirs)?;
            ensure!(text_equals(&answer, "/content/0/text", &text), "echo returned {answer}");
            echo_time += took;
        }
        if round > 0 {
            times.add(hub_time / READS_PER_ROUND, echo_time / READS_PER_ROUND);
        }
    }
    Ok(times)
}

fn text_equals(answer: &Value, at: &str, text: &str) -> bool {
    answer.pointer(at).and_then(Value::as_str) == Some(text)
}
