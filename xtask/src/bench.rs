//! The hub measured beside what it is made of, interleaved in one run, as ratios.

pub mod browser;
mod client;
pub mod files;
pub mod gateway;
mod report;
mod servers;
pub mod sql;
pub mod web;

use anyhow::{Context, Result, ensure};
use servers::{Running, free_port, post};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What one run needs.
struct Bench {
    work: PathBuf,
    octoprox: PathBuf,
    bare: PathBuf,
    echo: PathBuf,
    load: PathBuf,
    seconds: String,
    rounds: String,
}

const CONVERT: &str = r#"{"datetime":"2026-11-14T22:00:00","to_timezone":"Asia/Tokyo"}"#;

pub fn run(root: &Path, seconds: &str, rounds: &str) -> Result<()> {
    let bench = prepare(root, seconds, rounds)?;
    let proxied = [bench.proxied("2026-07-28", "modern")?, bench.proxied("2025-06-18", "legacy")?];
    let native = bench.native()?;
    let (cold, idle_mb) = (bench.cold_ratio()?, bench.idle()?);
    report::print(&proxied, &native, cold, idle_mb);
    Ok(())
}

fn cargo(folder: &Path, args: &[&str]) -> Result<()> {
    let status = Command::new("cargo").args(args).current_dir(folder).status()?;
    ensure!(status.success(), "cargo {} failed", args.join(" "));
    Ok(())
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn prepare(root: &Path, seconds: &str, rounds: &str) -> Result<Bench> {
    let work = target(root).join("bench");
    std::fs::create_dir_all(&work)?;
    cargo(root, &["build", "--profile", "measured", "-p", "octoprox", "--locked"])?;
    cargo(root, &["build", "--profile", "measured", "-p", "octo-web", "--example", "bare", "--locked"])?;
    tools(root, &work)?;
    Ok(Bench::of(work, &target(root).join("measured"), seconds, rounds))
}

/// A program of `bench/`, which is not part of the workspace.
fn tool(root: &Path, work: &Path, name: &str) -> Result<()> {
    let target = work.join("tools");
    let target = target.to_str().context("the path is not UTF-8")?;
    cargo(&root.join("bench").join(name), &["build", "--release", "--locked", "--target-dir", target])
}

/// The load generator and the server that is put behind the hub.
fn tools(root: &Path, work: &Path) -> Result<()> {
    ["echo-upstream", "mcp-load"].into_iter().try_for_each(|name| tool(root, work, name))
}

impl Bench {
    /// With the programs of this folder.
    fn of(work: PathBuf, folder: &Path, seconds: &str, rounds: &str) -> Self {
        Self {
            octoprox: folder.join("octoprox"),
            bare: folder.join("examples/bare"),
            echo: work.join("tools/release/echo-upstream"),
            load: work.join("tools/release/mcp-load"),
            seconds: seconds.to_owned(),
            rounds: rounds.to_owned(),
            work,
        }
    }

    fn hub(&self, name: &str, settings: &str) -> Result<Running> {
        let home = self.work.join(name);
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir_all(home.join("workspace"))?;
        let file = home.join("octoprox.yaml");
        std::fs::write(&file, settings)?;
        let port = free_port()?;
        let mut command = Command::new(&self.octoprox);
        command
            .args(["serve", "--port", &port.to_string(), "--config"])
            .arg(file)
            .current_dir(home.join("workspace"))
            .env("OCTOPROX_STATE_DIR", home.join("state"));
        Running::start(command, port)
    }

    fn echo_server(&self) -> Result<Running> {
        let port = free_port()?;
        let mut command = Command::new(&self.echo);
        command.args(["http", &port.to_string(), "sse"]);
        Running::start(command, port)
    }

    fn load(&self, targets: &[(&str, &Running, &str)], extra: &[&str]) -> Result<serde_json::Value> {
        let out = self.work.join("out.json");
        let mut command = Command::new(&self.load);
        command.args(["run", "--sessions", "1,16", "--seconds", &self.seconds, "--rounds", &self.rounds]);
        command.arg("--json").arg(&out).args(extra);
        for (name, server, path) in targets {
            let url = format!("http://127.0.0.1:{}{path}", server.port);
            command.args(["--target", &format!("name={name},url={url},pid={}", server.process.id())]);
        }
        ensure!(command.status()?.success(), "mcp-load failed");
        Ok(serde_json::from_str(&std::fs::read_to_string(out)?)?)
    }

    /// The same upstream directly, behind a plain hop, and behind the hub. The revision is the same on every edge: with
    /// the older one the upstream has less to do for each call, so a hub that bridges would be blamed for the difference.
    fn proxied(&self, revision: &str, era: &str) -> Result<serde_json::Value> {
        let echo = self.echo_server()?;
        let settings =
            format!("servers: {{up: {{url: 'http://127.0.0.1:{}/mcp', era: {era}}}}}\n", echo.port);
        let hub = self.hub("proxied", &settings)?;
        let nginx = servers::nginx(&self.work.join("nginx"), echo.port)?;
        self.load(
            &[("direct", &echo, "/mcp"), ("nginx", &nginx, "/mcp"), ("octoprox", &hub, "/mcp")],
            &["--protocol", revision],
        )
    }

    /// A native tool, and a handler that returns the same bytes without doing anything.
    fn native(&self) -> Result<serde_json::Value> {
        let hub = self.hub("native", "{}\n")?;
        let (list, call) = (self.work.join("list.json"), self.work.join("call.json"));
        std::fs::write(&list, post(hub.port, "tools/list", "{}")?)?;
        std::fs::write(
            &call,
            post(hub.port, "tools/call", &format!(r#"{{"name":"time_convert","arguments":{CONVERT}}}"#))?,
        )?;
        let port = free_port()?;
        let mut command = Command::new(&self.bare);
        command.arg(port.to_string()).arg(list).arg(call);
        let bare = Running::start(command, port)?;
        let options = ["--protocol", "2026-07-28", "--tool", "time_convert", "--args", CONVERT];
        self.load(&[("bare axum", &bare, "/mcp"), ("octoprox", &hub, "/mcp")], &options)
    }

    fn cold(&self, tool: &str, program: &Path, args: &[&str]) -> Result<f64> {
        let port = free_port()?.to_string();
        let mut load = Command::new(&self.load);
        load.args([
            "cold",
            "--url",
            &format!("http://127.0.0.1:{port}/mcp"),
            "--tool",
            tool,
            "--repeat",
            "1",
            "--",
        ]);
        load.arg(program).args(args).arg(&port);
        load.env("OCTOPROX_STATE_DIR", self.work.join("cold-state")).current_dir(&self.work);
        let output = load.output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        report::cold_ms(&text).with_context(|| format!("mcp-load cold said: {text}"))
    }

    /// Start to the first list, in turn, against a server that is nothing but rmcp.
    fn cold_ratio(&self) -> Result<f64> {
        let (mut bare, mut hub) = (Vec::new(), Vec::new());
        for _ in 0..9 {
            bare.push(self.cold("echo", &self.echo, &["http"])?);
            hub.push(self.cold("time_now", &self.octoprox, &["serve", "--port"])?);
        }
        println!("\ncold start in ms: bare rmcp {bare:?}, octoprox {hub:?}");
        Ok(report::median(hub) / report::median(bare))
    }

    /// Resident memory of a hub that nobody has called yet, in MB.
    fn idle(&self) -> Result<f64> {
        servers::resident_mb(self.hub("idle", "{}\n")?.process.id())
    }
}
