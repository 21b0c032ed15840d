//! Programs of the system that create networks, mounts and databases.

use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a program to its end and returns its standard output.
pub fn run(words: &[&str]) -> Result<String> {
    let (program, args) = words.split_first().context("no program")?;
    let mut command = Command::new(program);
    command.args(args);
    output_of(&mut command)
}

/// The same with environment variables, a directory and so on.
pub fn output_of(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {}", error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command of `ip`, written as one line.
pub fn ip(line: &str) -> Result<String> {
    let words: Vec<&str> = ["ip"].into_iter().chain(line.split_whitespace()).collect();
    run(&words)
}

/// Waits until a condition holds.
pub fn wait_until(what: &str, timeout: Duration, mut holds: impl FnMut() -> bool) -> Result<Duration> {
    let started = Instant::now();
    while !holds() {
        ensure!(started.elapsed() < timeout, "{what}: not within {} seconds", timeout.as_secs());
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(started.elapsed())
}
