//! Checks of the newest commit: GitHub's check runs, and statuses of other services.

use super::api_types::{CheckRun, CheckRuns, CommitStatus, CommitStatuses};
use super::github_api::PullRequestFetch;
use octo_toolkit::ToolError;
use octo_toolkit::hidden_text::strip_hidden_owned;
use schemars::JsonSchema;
use serde::Serialize;

/// Checks of the newest commit.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Checks {
    /// failing, pending, passing, or none.
    pub state: &'static str,
    /// Number of failed checks.
    failed: usize,
    /// Number of pending checks.
    pending: usize,
    /// Number of passed or skipped checks.
    passed: usize,
    /// The checks, failed ones first.
    pub runs: Vec<Check>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Check {
    /// Name of the check.
    name: String,
    /// Conclusion (success, failure, skipped, …) or progress (queued, in_progress, pending).
    state: String,
    /// Summary of the check; untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    about: Option<String>,
    /// URL of its log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CheckOutcome {
    Failed,
    Pending,
    Passed,
}

/// Checks of a commit, and whether there are more than were read.
pub async fn read(
    errand: &PullRequestFetch<'_>,
    commit: &str,
    removed: &mut usize,
) -> Result<(Checks, bool), ToolError> {
    let (runs, statuses) = (["commits", commit, "check-runs"], ["commits", commit, "status"]);
    let (runs, statuses) =
        tokio::try_join!(errand.pages::<CheckRuns>(&runs), errand.pages::<CommitStatuses>(&statuses))?;
    let is_more = runs.1 || statuses.1;
    let runs = runs
        .0
        .into_iter()
        .flat_map(|page| page.check_runs)
        .map(|run| from_run(run, removed))
        .collect::<Vec<_>>();
    let statuses =
        statuses.0.into_iter().flat_map(|page| page.statuses).map(|status| from_status(status, removed));
    let mut all: Vec<(CheckOutcome, Check)> = runs.into_iter().chain(statuses).collect();
    all.sort_by_key(|(fate, _)| *fate);
    let count = |wanted: CheckOutcome| all.iter().filter(|(fate, _)| *fate == wanted).count();
    let (failed, pending, passed) =
        (count(CheckOutcome::Failed), count(CheckOutcome::Pending), count(CheckOutcome::Passed));
    let state = match (failed, pending, passed) {
        (1.., _, _) => "failing",
        (0, 1.., _) => "pending",
        (0, 0, 1..) => "passing",
        _ => "none",
    };
    let runs = all.into_iter().map(|(_, check)| check).collect();
    Ok((Checks { state, failed, pending, passed, runs }, is_more))
}

fn from_run(run: CheckRun, removed: &mut usize) -> (CheckOutcome, Check) {
    let state = run.conclusion.unwrap_or(run.status);
    let fate = match state.as_str() {
        "success" | "neutral" | "skipped" => CheckOutcome::Passed,
        "queued" | "in_progress" | "requested" | "waiting" | "pending" => CheckOutcome::Pending,
        _ => CheckOutcome::Failed,
    };
    let about = run.output.and_then(|output| output.title);
    (fate, check(run.name, state, about, run.html_url, removed))
}

fn from_status(status: CommitStatus, removed: &mut usize) -> (CheckOutcome, Check) {
    let fate = match status.state.as_str() {
        "success" => CheckOutcome::Passed,
        "pending" => CheckOutcome::Pending,
        _ => CheckOutcome::Failed,
    };
    (fate, check(status.context, status.state, status.description, status.target_url, removed))
}

fn check(
    name: String,
    state: String,
    about: Option<String>,
    url: Option<String>,
    removed: &mut usize,
) -> Check {
    let mut short = |text: String| strip_hidden_owned(text, removed).chars().take(300).collect::<String>();
    let (name, state) = (short(name), short(state));
    let mut told = |text: Option<String>| text.map(&mut short).filter(|text| !text.is_empty());
    Check { name, state, about: told(about), url: told(url) }
}
