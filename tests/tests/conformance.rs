//! The official conformance suite: the fixture directly, the fixture through the hub, and the hub's own client.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests start the programs they test, and a missing member of a JSON value reads as null"
)]

#[path = "tasks/task_upstream.rs"]
mod task_upstream;

use anyhow::{Context, Result, ensure};
use octo_tests::fixture_process::FixtureServer;
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{LEGACY, MODERN};
use octo_tests::test_binaries::{example_path, service_variable};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

/// Number of scored server scenarios of each revision.
const SCORED_SCENARIOS: [(&str, usize); 2] = [(LEGACY, 30), (MODERN, 37)];

/// Scenarios of extensions that the hub's client supports; the suite runs them only when forced.
const EXTENSION_SCENARIOS: [&str; 4] = [
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
];

/// Scenarios of the tasks extension, and the number of checks of each. The suite skips one: it cannot watch for task
/// notifications yet.
const TASK_SCENARIOS: [(&str, usize); 10] = [
    ("tasks-lifecycle", 9),
    ("tasks-capability-negotiation", 5),
    ("tasks-wire-fields", 4),
    ("tasks-request-state-removal", 3),
    ("tasks-mrtr-input", 4),
    ("tasks-request-headers", 5),
    ("tasks-dispatch-and-envelope", 9),
    ("tasks-status-notifications", 0),
    ("tasks-required-task-error", 3),
    ("tasks-mrtr-composition", 2),
];

async fn run_suite(arguments: &[&str]) -> Result<(bool, String)> {
    let output = Command::new(service_variable("NODE24")?)
        .arg(service_variable("CONFORMANCE")?)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Ok((output.status.success(), text))
}

/// Result of one scenario: whether it passed, and every check that was not a success.
#[derive(Debug, Clone, PartialEq)]
struct ScenarioResult {
    passed: bool,
    scored: bool,
    remarks: BTreeSet<String>,
}

type ScenarioResults = BTreeMap<String, ScenarioResult>;

/// Repeats the suite if a scored scenario has only warnings: one of them is about a notification that did not arrive
/// within the suite's own timeout, and on a busy machine it may arrive later.
async fn run_server_scenarios(url: &str, revision: &str) -> Result<ScenarioResults> {
    let results = run_server_scenarios_once(url, revision).await?;
    let is_warned = |result: &ScenarioResult| {
        let mut remarks = result.remarks.iter().peekable();
        result.scored && remarks.peek().is_some() && remarks.all(|remark| remark.starts_with("WARNING"))
    };
    if results.values().any(is_warned) { run_server_scenarios_once(url, revision).await } else { Ok(results) }
}

async fn run_server_scenarios_once(url: &str, revision: &str) -> Result<ScenarioResults> {
    let folder = tempfile::TempDir::with_prefix("conformance")?;
    let out = folder.path().to_string_lossy().into_owned();
    let (_, text) = run_suite(&["server", "--url", url, "--requirements", revision, "-o", &out]).await?;
    let (_, summary) = text.split_once("=== SUMMARY ===").with_context(|| format!("no summary: {text}"))?;
    let (judged, unscored) = summary.split_once("Not scored").unwrap_or((summary, ""));
    let unscored: BTreeSet<&str> =
        unscored.lines().filter_map(parse_summary_line).map(|(_, name)| name).collect();
    let mut verdicts = ScenarioResults::new();
    for (passed, name) in judged.lines().filter_map(parse_summary_line) {
        let scored = !unscored.contains(name);
        let remarks = failed_checks(folder.path(), name)?;
        verdicts.insert(name.to_owned(), ScenarioResult { passed, scored, remarks });
    }
    Ok(verdicts)
}

/// Parses `✓ name: …` or `✗ name (…)`.
fn parse_summary_line(line: &str) -> Option<(bool, &str)> {
    let line = line.trim();
    let (passed, rest) = match line.strip_prefix('✓') {
        Some(rest) => (true, rest),
        None => (false, line.strip_prefix('✗')?),
    };
    let name = rest.trim_start().split([':', ' ']).next()?;
    Some((passed, name))
}

fn failed_checks(folder: &Path, scenario: &str) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // The rest of the folder's name is the time.
        let name = entry.file_name().to_string_lossy().into_owned();
        let rest = name.strip_prefix(&format!("server-{scenario}-"));
        if !rest.is_some_and(|rest| rest.starts_with("20")) {
            continue;
        }
        let checks: Vec<Value> = serde_json::from_slice(&std::fs::read(entry.path().join("checks.json"))?)?;
        for check in checks {
            let text = |key: &str| check[key].as_str().unwrap_or_default();
            if matches!(text("status"), "FAILURE" | "WARNING") {
                found.insert(format!("{} {}: {}", text("status"), text("id"), text("errorMessage")));
            }
        }
    }
    Ok(found)
}

/// Number of successful checks of the scenario in a directory.
fn count_successes(folder: &Path) -> Result<usize> {
    let mut right = 0;
    for entry in std::fs::read_dir(folder)? {
        let checks: Vec<Value> = serde_json::from_slice(&std::fs::read(entry?.path().join("checks.json"))?)?;
        right += checks.iter().filter(|check| check["status"] == "SUCCESS").count();
    }
    Ok(right)
}

/// Lines of `conformance-exceptions.txt`, and which of them were needed.
struct Exceptions {
    known: BTreeMap<(String, String), String>,
    needed: BTreeSet<(String, String)>,
}

impl Exceptions {
    fn read() -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance-exceptions.txt");
        let mut known = BTreeMap::new();
        for line in std::fs::read_to_string(path)?.lines() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let mut words = line.splitn(3, ' ');
            let (face, scenario) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let reason = words.next().with_context(|| format!("no reason: {line}"))?;
            known.insert((face.to_owned(), scenario.to_owned()), reason.trim().to_owned());
        }
        Ok(Self { known, needed: BTreeSet::new() })
    }

    fn is_excepted(&mut self, face: &str, scenario: &str) -> bool {
        let key = (face.to_owned(), scenario.to_owned());
        let excused = self.known.contains_key(&key);
        if excused {
            self.needed.insert(key);
        }
        excused
    }

    fn unused(&self) -> Vec<String> {
        self.known
            .keys()
            .filter(|key| !self.needed.contains(key))
            .map(|(face, scenario)| format!("{face} {scenario}"))
            .collect()
    }
}

/// Checks that report the same in different words count as the same.
fn same_result(direct: &ScenarioResult, through: &ScenarioResult) -> bool {
    let ids = |verdict: &ScenarioResult| -> BTreeSet<String> {
        verdict.remarks.iter().filter_map(|remark| remark.split(':').next()).map(str::to_owned).collect()
    };
    direct.passed == through.passed && ids(direct) == ids(through)
}

#[tokio::test]
async fn the_hub_is_judged_as_the_server_behind_it() -> Result<()> {
    let mut exceptions = Exceptions::read()?;
    let mut wrong = Vec::new();
    let both = FixtureServer::http("both", &[]).await?;
    for (revision, count) in SCORED_SCENARIOS {
        let direct = run_server_scenarios(&both.url, revision).await?;
        let scored = direct.values().filter(|verdict| verdict.scored);
        assert_eq!(scored.clone().count(), count, "{revision}: {direct:?}");
        assert!(
            scored.clone().all(|verdict| verdict.passed && verdict.remarks.is_empty()),
            "{revision}: {direct:#?}"
        );
        for era in ["both", "legacy", "modern"] {
            let fixture = FixtureServer::http(era, &[]).await?;
            let home = HubHome::new(&json!({
                "servers": {"fixture": {"url": fixture.url, "questions": ["elicitation", "roots", "sampling"]}},
                "profiles": {"bare": {"servers": ["fixture"], "without_prefix": true}},
            }))?;
            let server = home.serve().await?;
            let through = run_server_scenarios(&server.profile_url("bare"), revision).await?;
            ensure!(through.keys().eq(direct.keys()), "{revision} {era}: other scenarios: {through:?}");
            let face = format!("{revision}@{era}");
            // Tasks are the hub's own, whatever stands behind it, and have a test of their own.
            let relayed =
                through.iter().filter(|(name, _)| !TASK_SCENARIOS.iter().any(|(task, _)| task == name));
            for (scenario, verdict) in relayed {
                let expected = direct.get(scenario).context("a scenario that was not run directly")?;
                let excused = !same_result(expected, verdict) && exceptions.is_excepted(&face, scenario);
                if !same_result(expected, verdict) && (!excused || era == "both" && verdict.scored) {
                    wrong.push(format!(
                        "{face} {scenario}: directly {expected:?}, through the hub {verdict:?}"
                    ));
                }
            }
            let passed = through.values().filter(|verdict| verdict.scored && verdict.passed).count();
            println!("{face}: {passed} of {count} scored scenarios pass through the hub");
        }
    }
    wrong.extend(
        exceptions.unused().into_iter().map(|line| format!("this exception is no longer needed: {line}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test]
async fn the_hub_makes_tasks_as_the_extension_says() -> Result<()> {
    let slow = task_upstream::TaskUpstream::start().await?;
    let home = HubHome::new(&json!({
        "servers": {"slow": {"url": slow.url}},
        "profiles": {"bare": {"servers": ["slow"], "without_prefix": true}},
    }))?;
    let server = home.serve().await?;
    let url = server.profile_url("bare");
    let mut wrong = Vec::new();
    for (scenario, count) in TASK_SCENARIOS {
        let folder = tempfile::TempDir::with_prefix("conformance")?;
        let out = folder.path().to_string_lossy().into_owned();
        let mut arguments = vec!["server", "--url", &url, "--scenario", scenario];
        arguments.extend(["--spec-version", MODERN, "--force", "-o", &out]);
        let (passed, text) = run_suite(&arguments).await?;
        let (right, remarks) = (count_successes(folder.path())?, failed_checks(folder.path(), scenario)?);
        println!("{scenario}: {right} of {count} checks pass");
        if !passed || right != count || !remarks.is_empty() {
            wrong.push(format!("{scenario}: {right} of {count}, {remarks:#?}\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(slow.cancelled() > 0, "what the suite cancels ends behind the hub, too");
    Ok(())
}

/// Client scenarios of a revision that are not about logins.
async fn client_scenarios(revision: &str) -> Result<Vec<String>> {
    let (_, text) = run_suite(&["list", "--client", "--spec-version", revision]).await?;
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split(' ').next());
    Ok(names.filter(|name| !name.starts_with("auth/")).map(str::to_owned).collect())
}

#[tokio::test]
async fn the_hubs_client_passes() -> Result<()> {
    let client = example_path("conformance_client")?;
    let client = client.to_string_lossy();
    let mut wrong = Vec::new();
    for (revision, count, extensions) in [(LEGACY, 5, &[][..]), (MODERN, 8, &EXTENSION_SCENARIOS[..])] {
        let scenarios = client_scenarios(revision).await?;
        assert_eq!(scenarios.len(), count, "{revision}: {scenarios:?}");
        for scenario in scenarios.iter().map(String::as_str).chain(extensions.iter().copied()) {
            let folder = tempfile::TempDir::with_prefix("conformance")?;
            let out = folder.path().to_string_lossy().into_owned();
            let mut arguments = vec!["client", "--command", &client, "--scenario", scenario];
            arguments.extend(["--spec-version", revision, "-o", &out]);
            if extensions.contains(&scenario) {
                arguments.push("--force");
            }
            let (passed, text) = run_suite(&arguments).await?;
            if !passed || !text.contains("Passed: ") {
                wrong.push(format!("{revision} {scenario}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}
