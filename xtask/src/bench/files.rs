//! The file tools beside ripgrep, and a read beside an echo of the same bytes, in turn, as ratios.

pub mod stdio;
mod tree;

use super::report::median;
use super::{cargo, tool};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use stdio::Stdio;

const ROUNDS: usize = 21;
/// A read takes too little time to be measured alone.
const READS: u32 = 50;

pub fn run(root: &Path) -> Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let work = target.join("bench");
    std::fs::create_dir_all(&work)?;
    let rg = Command::new("rg").arg("--version").output();
    rg.context("rg is missing: apt-get install ripgrep")?;
    cargo(root, &["build", "--profile", "measured", "-p", "octoprox", "--locked"])?;
    tool(root, &work, "echo-upstream")?;
    let folder = work.join("tree");
    tree::plant(&folder)?;
    let state = work.join("files-state");
    let _ = std::fs::remove_dir_all(&state);
    let mut hub = Command::new(target.join("measured/octoprox"));
    hub.arg("stdio").current_dir(&work).env("OCTOPROX_WORKSPACE", &folder).env("OCTOPROX_STATE_DIR", &state);
    let mut hub = Stdio::start(hub)?;
    let mut echo = Command::new(work.join("tools/release/echo-upstream"));
    echo.arg("stdio");
    let mut echo = Stdio::start(echo)?;
    println!("\n| what | octoprox ms | beside ms | ratio | promised |\n|---|---|---|---|---|");
    row("fs_search, of rg -n", search(&mut hub, &folder)?, "1.5");
    row("fs_glob, of rg --files -g", glob(&mut hub, &folder)?, "1.5");
    row("fs_read_text of 10 KB, of an rmcp echo", read(&mut hub, &mut echo, &folder)?, "2");
    println!(
        "\nMedians of {ROUNDS} rounds in turn. rg's time has the start of a process in it, ours a message over stdio."
    );
    Ok(())
}

/// Times in milliseconds: ours, theirs, and the ratio of each round.
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

fn row(what: &str, times: Times, promised: &str) {
    let (ours, theirs, ratio) = (median(times.ours), median(times.theirs), median(times.ratios));
    println!("| {what} | {ours:.2} | {theirs:.2} | {ratio:.2} | at most {promised} |");
}

/// Runs ripgrep as a person would; gives the lines that it printed.
fn ripgrep(folder: &Path, args: &[&str]) -> Result<(usize, Duration)> {
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

/// One more round than is counted, to warm up; both must find the same.
fn beside_ripgrep(
    hub: &mut Stdio,
    folder: &Path,
    (tool, arguments, total): (&str, Value, &str),
    args: &[&str],
) -> Result<Times> {
    let mut times = Times::default();
    for round in 0..=ROUNDS {
        let (answer, ours) = hub.call(tool, &arguments)?;
        let (lines, theirs) = ripgrep(folder, args)?;
        let found = answer.pointer(&format!("/structuredContent/{total}")).and_then(Value::as_u64);
        ensure!(found == Some(lines as u64) && lines > 0, "{tool} found {found:?}, rg {lines}");
        if round > 0 {
            times.add(ours, theirs);
        }
    }
    Ok(times)
}

fn search(hub: &mut Stdio, folder: &Path) -> Result<Times> {
    let arguments = json!({"pattern": tree::NEEDLE, "max_results": 1000});
    beside_ripgrep(hub, folder, ("fs_search", arguments, "total_matches"), &["-n", tree::NEEDLE])
}

fn glob(hub: &mut Stdio, folder: &Path) -> Result<Times> {
    let arguments = json!({"pattern": tree::NAMES, "max_results": 10_000});
    beside_ripgrep(hub, folder, ("fs_glob", arguments, "total"), &["--files", "-g", tree::NAMES])
}

fn read(hub: &mut Stdio, echo: &mut Stdio, folder: &Path) -> Result<Times> {
    let text = std::fs::read_to_string(folder.join(tree::TEN_KB))?;
    let (ours, theirs) = (json!({"path": tree::TEN_KB}), json!({"text": text}));
    let mut times = Times::default();
    for round in 0..=ROUNDS {
        let (mut hub_time, mut echo_time) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..READS {
            let (answer, took) = hub.call("fs_read_text", &ours)?;
            ensure!(says(&answer, "/structuredContent/content", &text), "fs_read_text gave {answer}");
            hub_time += took;
            let (answer, took) = echo.call("echo", &theirs)?;
            ensure!(says(&answer, "/content/0/text", &text), "echo gave {answer}");
            echo_time += took;
        }
        if round > 0 {
            times.add(hub_time / READS, echo_time / READS);
        }
    }
    Ok(times)
}

fn says(answer: &Value, at: &str, text: &str) -> bool {
    answer.pointer(at).and_then(Value::as_str) == Some(text)
}
