//! `fetch_url` of a page against a bare GET of the same page by the same client, in turn, as ratios.

mod generated_page;

use super::bench_report::median;
use super::cargo;
use super::raw_http_client::RawHttpClient;
use super::server_processes::{ServerProcess, free_port};
use anyhow::{Result, ensure};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const ROUNDS: usize = 21;
/// Calls per round: one is too short to measure.
const CALLS_PER_ROUND: u32 = 20;

pub fn run(root: &Path) -> Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    cargo(root, &["build", "--profile", "measured", "-p", "octoprox", "--locked"])?;
    let home = target.join("bench/web");
    let _ = std::fs::remove_dir_all(&home);
    std::fs::create_dir_all(&home)?;
    let html = generated_page::html();
    let site = start_site(&html)?;
    let port = free_port()?;
    let mut hub = Command::new(target.join("measured/octoprox"));
    hub.args(["serve", "--port", &port.to_string()])
        .current_dir(&home)
        .env("OCTOPROX_STATE_DIR", home.join("state"))
        .env("OCTOPROX_SURFACE", "full")
        .env("OCTOPROX_NET_ALLOW", "127.0.0.1");
    let hub = ServerProcess::start(hub, port)?;
    let (mut bare, mut rest) = (RawHttpClient::connect(site)?, RawHttpClient::connect(hub.port)?);
    println!(
        "\n{} bytes\n\n| measurement | fetch_url ms | bare GET ms | ratio | target |\n|---|---|---|---|---|",
        html.len()
    );
    let rows = [
        ("main content as Markdown", ""),
        ("whole page as Markdown", r#","extract_main_content":false"#),
        ("raw, nothing converted", r#","output_format":"raw","include_links":false"#),
    ];
    let mut fresh = 0;
    for (what, more) in rows {
        measure(what, &mut bare, &mut rest, || {
            fresh += 1;
            format!(r#"{{"url":"http://127.0.0.1:{site}/guide/engine?n={fresh}"{more}}}"#)
        })?;
    }
    println!(
        "\nMedians of {ROUNDS} rounds of {CALLS_PER_ROUND} calls in turn, over connections that stay open, each for an address that \
         was never asked for. Ours is a call over REST, a GET, and the reading of the page."
    );
    Ok(())
}

fn measure(
    what: &str,
    bare: &mut RawHttpClient,
    rest: &mut RawHttpClient,
    mut arguments: impl FnMut() -> String,
) -> Result<()> {
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (mut hub_time, mut bare_time) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..CALLS_PER_ROUND {
            let (body, took) = bare.send("GET", "/guide/engine", "")?;
            ensure!(body.starts_with(b"<!DOCTYPE html>"), "unexpected response of the site");
            bare_time += took;
            let (body, took) = rest.send("POST", "/tools/fetch_url", &arguments())?;
            let told = String::from_utf8_lossy(&body);
            let read = told.contains(r#""success":true"#) && told.contains(generated_page::CONTENT_END);
            ensure!(read, "fetch_url returned {}", told.get(..400).unwrap_or(&told));
            hub_time += took;
        }
        if round > 0 {
            ours.push(hub_time.as_secs_f64() * 1e3 / f64::from(CALLS_PER_ROUND));
            theirs.push(bare_time.as_secs_f64() * 1e3 / f64::from(CALLS_PER_ROUND));
            ratios.push(hub_time.as_secs_f64() / bare_time.as_secs_f64());
        }
    }
    println!("| {what} | {:.3} | {:.3} | {:.2} | at most 3 |", median(ours), median(theirs), median(ratios));
    Ok(())
}

/// Serves the same page for every path, over persistent connections, until the program exits.
fn start_site(html: &str) -> Result<u16> {
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n{html}",
        html.len()
    );
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || answer_all(stream, &answer));
        }
    });
    Ok(port)
}

fn answer_all(stream: TcpStream, answer: &str) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut from = BufReader::new(stream);
    let mut line = String::new();
    while from.read_line(&mut line)? > 0 {
        if line == "\r\n" {
            from.get_mut().write_all(answer.as_bytes())?;
        }
        line.clear();
    }
    Ok(())
}
