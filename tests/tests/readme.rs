//! Someone who has only the README or a page of the guide gets to a call: the commands run as they stand, in an empty
//! folder.

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
fn blocks(page: &str) -> Vec<&str> {
    page.split("```sh run\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// What each block must show: the lines of the text that follows it, before the next one.
fn shown(page: &str) -> Vec<Vec<&str>> {
    let parts = page.split("```sh run\n").skip(1);
    parts
        .map(|part| {
            part.split("```text\n")
                .nth(1)
                .and_then(|rest| rest.split("```").next())
                .map_or_else(Vec::new, |text| text.lines().collect())
        })
        .collect()
}

/// Runs all blocks of a page as one script and gives what it printed.
fn run(page: &str) -> Result<(String, String)> {
    let home = tempfile::tempdir()?;
    let folder = program("octoprox")?.parent().context("no folder")?.display().to_string();
    // Another port than the usual one, so that a hub that runs here already is left alone.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let mut script = String::from("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n");
    for (at, block) in blocks(page).iter().enumerate() {
        script.push_str(&format!("echo '@@ block {at}'\n{block}\n"));
    }
    let script = script.replace("127.0.0.1:7000", &format!("127.0.0.1:{port}"));
    // The hub's own data lie beside the folder, as they do for everybody.
    let work = home.path().join("work");
    std::fs::create_dir(&work)?;
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(work)
        .env_clear()
        .env("PATH", format!("{folder}:{}", std::env::var("PATH")?))
        .env("HOME", home.path())
        .env("OCTOPROX_PORT", &port)
        .stdin(Stdio::null())
        .output()?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    Ok((out.into_owned(), err.into_owned()))
}

#[test]
fn the_commands_of_the_guide_work() -> Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide");
    let mut pages = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let page = std::fs::read_to_string(&path)?;
        let (out, err) = run(&page)?;
        let parts: Vec<&str> = out.split("@@ block ").skip(1).collect();
        let expected = shown(&page);
        assert_eq!(parts.len(), expected.len(), "{}", path.display());
        for (part, expected) in parts.iter().zip(expected) {
            for text in expected {
                assert!(part.contains(text), "{}: {text} is not in:\n{part}\n{err}", path.display());
            }
        }
        pages += 1;
    }
    assert!(pages >= 3, "{pages} pages");
    Ok(())
}

#[test]
fn the_commands_of_the_readme_work() -> Result<()> {
    let (out, err) = run(README)?;
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
