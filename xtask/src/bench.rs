//! Benchmarks of the hub against baselines, interleaved in one run, as ratios.

mod bench_report;
pub mod browser_bench;
pub mod files_bench;
pub mod gateway_bench;
pub mod raw_http_client;
mod server_processes;
pub mod sql_bench;
pub mod web_bench;

use anyhow::{Context, Result, ensure};
use server_processes::{ServerProcess, free_port, post_modern};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs and parameters of a run.
struct Bench {
    work_dir: PathBuf,
    octoprox_bin: PathBuf,
    /// An earlier build, measured in turn with the current one.
    before_bin: Option<PathBuf>,
    baseline_bin: PathBuf,
    echo_bin: PathBuf,
    load_bin: PathBuf,
    seconds: String,
    rounds: String,
}

/// Names of the current and the earlier build in the report.
const BUILDS: [&str; 2] = ["octoprox", "before"];

const CONVERT_ARGUMENTS: &str = r#"{"datetime":"2026-11-14T22:00:00","to_timezone":"Asia/Tokyo"}"#;

pub fn run(root: &Path, seconds: &str, rounds: &str, before: Option<&str>) -> Result<()> {
    let mut bench = prepare(root, seconds, rounds)?;
    bench.before_bin = before.map(|path| Path::new(path).canonicalize()).transpose()?;
    let proxied =
        [bench.measure_proxied("2026-07-28", "modern")?, bench.measure_proxied("2025-06-18", "legacy")?];
    let native = bench.measure_native()?;
    let (cold, idle_mb) = (bench.cold_ratios()?, bench.idle_memory()?);
    bench_report::print(&proxied, &native, &cold, &idle_mb);
    Ok(())
}

fn cargo(folder: &Path, args: &[&str]) -> Result<()> {
    let status = Command::new("cargo").args(args).current_dir(folder).status()?;
    ensure!(status.success(), "cargo {} failed", args.join(" "));
    Ok(())
}

pub fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn prepare(root: &Path, seconds: &str, rounds: &str) -> Result<Bench> {
    let work = target_dir(root).join("bench");
    std::fs::create_dir_all(&work)?;
    cargo(root, &["build", "--profile", "measured", "-p", "octoprox", "--locked"])?;
    cargo(root, &["build", "--profile", "measured", "-p", "octo-web", "--example", "baseline", "--locked"])?;
    build_tools(root, &work)?;
    Ok(Bench::with_binaries(work, &target_dir(root).join("measured"), seconds, rounds))
}

/// Builds a program of `bench/`, which is not part of the workspace.
fn tool(root: &Path, work: &Path, name: &str) -> Result<()> {
    let target = work.join("tools");
    let target = target.to_str().context("the path is not UTF-8")?;
    cargo(&root.join("bench").join(name), &["build", "--release", "--locked", "--target-dir", target])
}

/// Builds the load generator and the upstream server.
fn build_tools(root: &Path, work: &Path) -> Result<()> {
    ["echo-upstream", "mcp-load"].into_iter().try_for_each(|name| tool(root, work, name))
}

impl Bench {
    /// With the programs in this directory.
    fn with_binaries(work_dir: PathBuf, folder: &Path, seconds: &str, rounds: &str) -> Self {
        Self {
            octoprox_bin: folder.join("octoprox"),
            before_bin: None,
            baseline_bin: folder.join("examples/baseline"),
            echo_bin: work_dir.join("tools/release/echo-upstream"),
            load_bin: work_dir.join("tools/release/mcp-load"),
            seconds: seconds.to_owned(),
            rounds: rounds.to_owned(),
            work_dir,
        }
    }

    /// The current build, then the earlier one if there is one, with their names in the report.
    fn hub_bins(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        BUILDS
            .into_iter()
            .zip([Some(self.octoprox_bin.as_path()), self.before_bin.as_deref()].into_iter().flatten())
    }

    fn start_hubs(&self, name: &str, settings: &str) -> Result<Vec<(&'static str, ServerProcess)>> {
        let start = |(build, path)| {
            let hub = self.start_hub_of(path, &format!("{name}-{build}"), settings)?;
            Ok((build, hub))
        };
        self.hub_bins().map(start).collect()
    }

    fn start_hub(&self, name: &str, settings: &str) -> Result<ServerProcess> {
        self.start_hub_of(&self.octoprox_bin, name, settings)
    }

    fn start_hub_of(&self, program: &Path, name: &str, settings: &str) -> Result<ServerProcess> {
        let home = self.work_dir.join(name);
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir_all(home.join("workspace"))?;
        let file = home.join("octoprox.yaml");
        std::fs::write(&file, settings)?;
        let port = free_port()?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--port", &port.to_string(), "--config"])
            .arg(file)
            .current_dir(home.join("workspace"))
            .env("OCTOPROX_STATE_DIR", home.join("state"))
            .env("OCTOPROX_SURFACE", "full");
        ServerProcess::start(command, port)
    }

    fn start_echo(&self) -> Result<ServerProcess> {
        let port = free_port()?;
        let mut command = Command::new(&self.echo_bin);
        command.args(["http", &port.to_string(), "sse"]);
        ServerProcess::start(command, port)
    }

    fn run_load(
        &self,
        targets: &[(&str, &ServerProcess, &str)],
        extra: &[&str],
    ) -> Result<serde_json::Value> {
        let out = self.work_dir.join("out.json");
        let mut command = Command::new(&self.load_bin);
        command.args(["run", "--sessions", "1,16", "--seconds", &self.seconds, "--rounds", &self.rounds]);
        command.arg("--json").arg(&out).args(extra);
        for (name, server, path) in targets {
            let url = format!("http://127.0.0.1:{}{path}", server.port);
            command.args(["--target", &format!("name={name},url={url},pid={}", server.process.id())]);
        }
        ensure!(command.status()?.success(), "mcp-load failed");
        Ok(serde_json::from_str(&std::fs::read_to_string(out)?)?)
    }

    /// The same upstream directly, behind a plain proxy, and behind the hub. The revision is the same on every edge:
    /// with the older one the upstream does less work per call, and a hub that bridges would be charged for the
    /// difference.
    fn measure_proxied(&self, revision: &str, era: &str) -> Result<serde_json::Value> {
        let echo = self.start_echo()?;
        let settings =
            format!("servers: {{up: {{url: 'http://127.0.0.1:{}/mcp', era: {era}}}}}\n", echo.port);
        let hubs = self.start_hubs("proxied", &settings)?;
        let nginx = server_processes::start_nginx(&self.work_dir.join("nginx"), echo.port)?;
        let mut targets = vec![("direct", &echo, "/mcp"), ("nginx", &nginx, "/mcp")];
        targets.extend(hubs.iter().map(|(build, hub)| (*build, hub, "/mcp")));
        self.run_load(&targets, &["--protocol", revision])
    }

    /// A native tool, and a handler that returns the same bytes without any work.
    fn measure_native(&self) -> Result<serde_json::Value> {
        let hubs = self.start_hubs("native", "{}\n")?;
        let (_, hub) = hubs.first().context("no hub")?;
        let (list, call) = (self.work_dir.join("list.json"), self.work_dir.join("call.json"));
        std::fs::write(&list, post_modern(hub.port, "tools/list", "{}")?)?;
        std::fs::write(
            &call,
            post_modern(
                hub.port,
                "tools/call",
                &format!(r#"{{"name":"time_convert","arguments":{CONVERT_ARGUMENTS}}}"#),
            )?,
        )?;
        let port = free_port()?;
        let mut command = Command::new(&self.baseline_bin);
        command.arg(port.to_string()).arg(list).arg(call);
        let bare = ServerProcess::start(command, port)?;
        let options = ["--protocol", "2026-07-28", "--tool", "time_convert", "--args", CONVERT_ARGUMENTS];
        let mut targets = vec![("bare axum", &bare, "/mcp")];
        targets.extend(hubs.iter().map(|(build, hub)| (*build, hub, "/mcp")));
        self.run_load(&targets, &options)
    }

    fn measure_cold_start(&self, name: &str, tool: &str, program: &Path, args: &[&str]) -> Result<f64> {
        let port = free_port()?.to_string();
        let mut load = Command::new(&self.load_bin);
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
        load.env("OCTOPROX_SURFACE", "full")
            .env("OCTOPROX_STATE_DIR", self.work_dir.join(format!("cold-{name}")))
            .current_dir(&self.work_dir);
        let output = load.output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        bench_report::cold_ms(&text).with_context(|| format!("unexpected output of mcp-load cold: {text}"))
    }

    /// Time from start to the first list, in turn with a plain rmcp server.
    fn cold_ratios(&self) -> Result<Vec<f64>> {
        let mut bare = Vec::new();
        let mut hubs: Vec<(&str, &Path, Vec<f64>)> =
            self.hub_bins().map(|(build, path)| (build, path, Vec::new())).collect();
        // Builds take turns in going first: the first start after another program's is faster than the second.
        for round in 0..10 {
            bare.push(self.measure_cold_start("bare", "echo", &self.echo_bin, &["http"])?);
            let mut order: Vec<_> = hubs.iter_mut().collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for (build, path, times) in order {
                times.push(self.measure_cold_start(build, "time_now", path, &["serve", "--port"])?);
            }
        }
        println!("\ncold start in ms: bare rmcp {bare:?}");
        for (build, _, times) in &hubs {
            println!("cold start in ms: {build} {times:?}");
        }
        let bare = bench_report::median(bare);
        Ok(hubs.into_iter().map(|(_, _, times)| bench_report::median(times) / bare).collect())
    }

    /// Resident memory of each hub before any call, in MB.
    fn idle_memory(&self) -> Result<Vec<f64>> {
        let hubs = self.start_hubs("idle", "{}\n")?;
        hubs.iter().map(|(_, hub)| server_processes::resident_mb(hub.process.id())).collect()
    }
}
