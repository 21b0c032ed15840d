//! A workflow of twenty steps under `kill -9`: every run ends, no effect occurs twice, the trace records each attempt.

use anyhow::{Context, Result, ensure};
use octo_tests::hub_process::HubHome;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

const FLOW: &str = r#"version: 1
name: twenty steps
params:
  run: {required: true}
steps:
  - {id: first, tool: fs_append, with: {path: log-0.txt, text: "{{ params.run }} first\n"}}
  - id: beside
    parallel:
      - - {id: a1, tool: fs_append, with: {path: log-1.txt, text: "{{ params.run }} a1\n"}}
        - {id: a2, tool: fs_append, with: {path: log-0.txt, text: "{{ params.run }} a2\n"}}
        - {id: a3, tool: fs_append, with: {path: log-1.txt, text: "{{ params.run }} a3\n"}}
      - - {id: b1, tool: fs_append, with: {path: log-2.txt, text: "{{ params.run }} b1\n"}}
        - {id: b2, tool: fs_append, with: {path: log-2.txt, text: "{{ params.run }} b2\n"}}
      - - {id: c1, tool: fs_append, with: {path: log-3.txt, text: "{{ params.run }} c1\n"}}
        - {id: c2, tool: fs_stat, with: {path: flow.yaml}}
        - {id: c3, tool: fs_append, with: {path: log-3.txt, text: "{{ params.run }} c3\n"}}
  - id: probe
    tool: fs_read_text
    with: {path: nowhere.txt}
    retry: {times: 1, delay_seconds: 0.005, on: [not_found]}
    on_error: continue
  - id: told
    if: exists(steps.probe.error) and steps.probe.error.kind == 'not_found'
    tool: fs_append
    with: {path: log-0.txt, text: "{{ params.run }} told\n"}
  - id: handled
    tool: fs_read_text
    with: {path: nowhere.txt}
    on_error:
      steps:
        - {id: mended, tool: fs_append, with: {path: log-1.txt, text: "{{ params.run }} mended\n"}}
  - {id: never, if: steps.first.status == 'failed', tool: fs_append, with: {path: log-0.txt, text: "{{ params.run }} never\n"}}
  - id: each
    for_each: [x, y, z]
    concurrency: 2
    tool: fs_append
    with: {path: log-2.txt, text: "{{ params.run }} each {{ item }}\n"}
  - id: pairs
    for_each: [p, q]
    as: name
    steps:
      - {id: looked, tool: fs_stat, with: {path: flow.yaml}}
      - {id: pair, tool: fs_append, with: {path: log-3.txt, text: "{{ params.run }} pair {{ name }}\n"}}
  - {id: same, tool: fs_write_text, with: {path: "same-{{ params.run }}.txt", text: "the same"}, repeat: allowed}
  - {id: last, tool: fs_append, with: {path: log-0.txt, text: "{{ params.run }} last\n"}}
outputs:
  items: "{{ length(steps.each.output) }}"
"#;

/// The line that a step writes; None for a step that may run again.
fn expected_line(run: usize, key: &str) -> Option<String> {
    let word = match key {
        "first" | "a1" | "a2" | "a3" | "b1" | "b2" | "c1" | "c3" | "told" | "mended" | "never" | "last" => {
            key
        }
        "each[0]" => "each x",
        "each[1]" => "each y",
        "each[2]" => "each z",
        "pair[0]" => "pair p",
        "pair[1]" => "pair q",
        _ => return None,
    };
    Some(format!("r{run} {word}"))
}

const EXPECTED_LINES: usize = 16;

/// When the process is killed.
#[derive(Debug, Clone, Copy)]
enum KillPoint {
    /// After this many steps were reported as finished.
    Finished(u64),
    /// As soon as there are this many more lines in all files: between an effect and its record.
    Effect(usize),
    /// After this time.
    After(Duration),
}

/// Deterministic random number generator.
struct Rng(u64);

impl Rng {
    fn next_below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn kill_point(&mut self) -> KillPoint {
        match self.next_below(3) {
            0 => KillPoint::Finished(self.next_below(14)),
            1 => KillPoint::Effect(1 + self.next_below(7) as usize),
            _ => KillPoint::After(Duration::from_micros(60_000 + self.next_below(110_000))),
        }
    }
}

struct KillHarness {
    home: HubHome,
    work: PathBuf,
    rng: Rng,
    kills: usize,
    /// Kills after which it was unknown whether a step had run.
    undecided: usize,
    skipped: usize,
    redone: usize,
    /// Steps that were interrupted at least once.
    interrupted_steps: BTreeSet<String>,
}

impl KillHarness {
    fn new() -> Result<Self> {
        let home = HubHome::new(&json!({"workspace": "work"}))?;
        let work = home.dir.path().join("work");
        std::fs::create_dir(&work)?;
        std::fs::write(work.join("flow.yaml"), FLOW)?;
        Ok(Self {
            home,
            work,
            rng: Rng(4711),
            kills: 0,
            undecided: 0,
            skipped: 0,
            redone: 0,
            interrupted_steps: BTreeSet::new(),
        })
    }

    fn lines(&self) -> Vec<String> {
        let text = |n| std::fs::read_to_string(self.work.join(format!("log-{n}.txt"))).unwrap_or_default();
        (0..4).flat_map(|n| text(n).lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    fn start(&self, args: &[String]) -> Result<Child> {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = self.home.command(&args)?;
        Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
    }

    /// Waits for the moment and kills. True if the process was still running.
    async fn kill(&mut self, mut child: Child, moment: KillPoint) -> Result<bool> {
        let stderr = child.stderr.take().context("no stderr")?;
        let mut said = BufReader::new(stderr).lines();
        let deadline = Instant::now() + Duration::from_secs(20);
        match moment {
            KillPoint::After(after) => {
                let _ = tokio::time::timeout(after, child.wait()).await;
            }
            KillPoint::Finished(0) => {}
            KillPoint::Finished(wanted) => {
                while let Some(line) = said.next_line().await? {
                    let done = line.split(' ').next().and_then(|word| word.parse::<u64>().ok());
                    if done.is_some_and(|done| done >= wanted) {
                        break;
                    }
                }
            }
            KillPoint::Effect(more) => {
                let wanted = self.lines().len() + more;
                while self.lines().len() < wanted && child.try_wait()?.is_none() {
                    ensure!(Instant::now() < deadline, "nothing happens");
                }
            }
        }
        let alive = child.try_wait()?.is_none();
        child.kill().await?;
        self.kills += usize::from(alive);
        Ok(alive)
    }

    async fn json(&self, args: &[&str]) -> Result<Value> {
        let (_, out, err) = self.home.run(args).await?;
        serde_json::from_str(&out).with_context(|| format!("{args:?}: {out}{err}"))
    }

    /// The run's state, and the pending decisions: an interrupted step is skipped if its line exists. It is read
    /// through the hub, which first rolls back what a killed hub has left half done.
    async fn decisions(&mut self, run: usize, id: &str) -> Result<(String, Vec<String>)> {
        let (_, _, _) = self.home.run(&["call", "fs_stat", "path=flow.yaml"]).await?;
        let shown = self.json(&["workflow", "show", id, "--json"]).await?;
        let lines = self.lines();
        let mut decided = Vec::new();
        for step in shown["steps"].as_array().context("no steps")? {
            let key = step["id"].as_str().unwrap_or_default();
            if !matches!(step["status"].as_str(), Some("started" | "interrupted")) {
                continue;
            }
            let Some(line) = expected_line(run, key) else { continue };
            self.undecided += 1;
            self.interrupted_steps.insert(key.to_owned());
            let there = lines.contains(&line);
            if there {
                self.skipped += 1;
            } else {
                self.redone += 1;
            }
            decided.push(if there { "--skip" } else { "--redo" }.to_owned());
            decided.push(key.to_owned());
        }
        Ok((shown["status"].as_str().unwrap_or_default().to_owned(), decided))
    }

    /// One run, killed at most this many times, then resumed to its end.
    async fn run(&mut self, run: usize, kills: usize) -> Result<String> {
        let begin: Vec<String> =
            ["workflow", "run", "flow.yaml", &format!("run=r{run}")].map(str::to_owned).into();
        let child = self.start(&begin)?;
        let moment = self.rng.kill_point();
        self.kill(child, moment).await?;
        let newest = self.json(&["workflow", "list", "-n", "1", "--json"]).await?;
        let newest = &newest["runs"][0];
        let id = match newest["run_id"].as_str() {
            Some(id) if self.belongs_to(run, id).await? => id.to_owned(),
            // Killed before anything was begun: nothing is there, and a new run is.
            _ => return Box::pin(self.run(run, kills.saturating_sub(1))).await,
        };
        for at in 1..200 {
            let (status, decided) = self.decisions(run, &id).await?;
            if status == "done" {
                return Ok(id);
            }
            let mut args: Vec<String> = ["workflow", "resume", &id].map(str::to_owned).into();
            args.extend(decided);
            let child = self.start(&args)?;
            if at < kills {
                let moment = self.rng.kill_point();
                self.kill(child, moment).await?;
            } else {
                let ended = child.wait_with_output().await?;
                let said = String::from_utf8_lossy(&ended.stderr).into_owned();
                ensure!(ended.status.success() || said.contains("was interrupted"), "run {run}: {said}");
            }
        }
        anyhow::bail!("run {run} does not end")
    }

    /// Whether a listed run is the one that was just started: its first step writes its number.
    async fn belongs_to(&self, run: usize, id: &str) -> Result<bool> {
        Ok(self.run_of_id(id).is_none_or(|known| known == run))
    }

    /// Run number of an id, once the run is done.
    fn run_of_id(&self, id: &str) -> Option<usize> {
        let done = std::fs::read_to_string(self.work.join("runs.txt")).unwrap_or_default();
        done.lines().find_map(|line| {
            let (known, run) = line.split_once(' ')?;
            (known == id).then(|| run.parse().ok()).flatten()
        })
    }

    /// Checks what a completed run must have left.
    fn check(&self, run: usize, id: &str) -> Result<()> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for line in self.lines().into_iter().filter(|line| line.starts_with(&format!("r{run} "))) {
            *counts.entry(line).or_default() += 1;
        }
        ensure!(
            counts.len() == EXPECTED_LINES && counts.values().all(|count| *count == 1),
            "run {run}: {counts:#?}"
        );
        let folder = self.work.join("artifacts").join(id);
        let trace: Value = serde_json::from_slice(&std::fs::read(folder.join("run.json"))?)?;
        ensure!(trace["status"] == "done", "run {run}: {trace}");
        let outputs: Value = serde_json::from_slice(&std::fs::read(folder.join("outputs.json"))?)?;
        ensure!(outputs == json!({"items": 3}), "run {run}: {outputs}");
        let mut keys = Vec::new();
        for step in trace["steps"].as_array().context("no steps")? {
            let key = step["id"].as_str().unwrap_or_default().to_owned();
            let attempts = step["attempts"].as_array().context("no attempts")?;
            for attempt in attempts {
                let told = attempt["started"].is_string() && attempt["outcome"].is_string();
                ensure!(told, "run {run}: {key} does not tell how it went: {attempt}");
            }
            // What cannot be repeated was done or set aside once, and its attempts before were decided about.
            if expected_line(run, &key).is_some() && step["status"] == "done" {
                let ended =
                    |attempt: &&Value| matches!(attempt["outcome"].as_str(), Some("done" | "skipped"));
                ensure!(attempts.iter().filter(ended).count() == 1, "run {run}: {key}: {attempts:?}");
            }
            keys.push(key);
        }
        for key in ["first", "a3", "b2", "c3", "each[2]", "pair[1]", "mended", "last"] {
            ensure!(keys.iter().any(|known| known == key), "run {run}: {key} is not in the trace");
        }
        Ok(())
    }
}

async fn run_with_kills(kills: usize, per_run: usize) -> Result<()> {
    let begun = Instant::now();
    let mut ground = KillHarness::new()?;
    let mut runs = 0;
    while ground.kills < kills {
        let id = ground.run(runs, per_run).await?;
        ground.check(runs, &id)?;
        let mut known = std::fs::read_to_string(ground.work.join("runs.txt")).unwrap_or_default();
        known.push_str(&format!("{id} {runs}\n"));
        std::fs::write(ground.work.join("runs.txt"), known)?;
        runs += 1;
    }
    let (code, out, err) = ground.home.run(&["audit", "verify"]).await?;
    ensure!(code == 0, "the audit is not whole: {out}{err}");
    println!(
        "{runs} runs, {} kills, {} steps cut off ({} with their effect, {} without; {} different ones), 0 effects twice, 0 lost, {:?}",
        ground.kills,
        ground.undecided,
        ground.skipped,
        ground.redone,
        ground.interrupted_steps.len(),
        begun.elapsed()
    );
    // Chance decides where each kill falls; so many of them fall nearly everywhere.
    ensure!(
        kills < 200 || ground.interrupted_steps.len() >= 12,
        "only these were cut off: {:?}",
        ground.interrupted_steps
    );
    Ok(())
}

#[tokio::test]
async fn a_few_kills_of_a_twenty_step_flow() -> Result<()> {
    run_with_kills(12, 6).await
}

#[tokio::test]
#[ignore = "takes minutes: two hundred kills of the whole program"]
async fn two_hundred_kills_of_a_twenty_step_flow() -> Result<()> {
    run_with_kills(200, 8).await
}
