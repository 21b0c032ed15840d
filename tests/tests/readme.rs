//! Someone who has only the README gets to a call: its commands run as they stand, in an empty folder.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

use anyhow::{Context, Result};
use octo_tests::binaries::program;
use std::process::{Command, Stdio};

const README: &str = include_str!("../../README.md");

/// The commands marked to be run, block by block.
fn blocks() -> Vec<&'static str> {
    README.split("```sh run\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_commands_of_the_readme_work() -> Result<()> {
    let home = tempfile::tempdir()?;
    let folder = program("octoprox")?.parent().context("no folder")?.display().to_string();
    // Another port than the usual one, so that a hub that runs here already is left alone.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let mut script = String::from("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n");
    for (at, block) in blocks().iter().enumerate() {
        script.push_str(&format!("echo '@@ block {at}'\n{block}\n"));
    }
    let script = script.replace("127.0.0.1:7000", &format!("127.0.0.1:{port}"));
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(home.path())
        .env_clear()
        .env("PATH", format!("{folder}:{}", std::env::var("PATH")?))
        .env("HOME", home.path())
        .env("OCTOPROX_PORT", &port)
        .stdin(Stdio::null())
        .output()?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    let parts: Vec<&str> = out.split("@@ block ").skip(1).collect();
    let expected: [&[&str]; 4] = [
        &["time_now", "2026-11-15T07:00:00"],
        &["\"protocolVersion\":\"2025-11-25\"", "\"days\":358"],
        &["\"success\":true", "\"day_of_week\":\"Friday\"", "\"resultType\":\"complete\"", "Europe/Berlin"],
        &["time_convert", "time_diff", "time_parse", "time_now"],
    ];
    assert_eq!(parts.len(), expected.len());
    for (part, expected) in parts.iter().zip(expected) {
        for text in expected {
            assert!(part.contains(text), "{text} is not in:\n{part}\n{err}");
        }
    }
    Ok(())
}
