//! Types of GitHub's API, as far as used. Anything may be absent: deleted users, deleted forks, older servers.

use serde::Deserialize;

#[derive(Deserialize)]
pub struct User {
    #[serde(default)]
    pub login: String,
}

#[derive(Deserialize)]
pub struct Label {
    #[serde(default)]
    pub name: String,
}

#[derive(Deserialize)]
pub struct Repository {
    #[serde(default)]
    pub full_name: String,
}

#[derive(Deserialize)]
pub struct Branch {
    #[serde(default, rename = "ref")]
    pub name: String,
    #[serde(default)]
    pub sha: String,
    #[serde(default)]
    pub repo: Option<Repository>,
}

#[derive(Deserialize)]
pub struct PullRequestBody {
    pub number: u64,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub state: String,
    #[serde(default)]
    pub draft: bool,
    #[serde(default)]
    pub merged: bool,
    #[serde(default)]
    pub mergeable_state: Option<String>,
    #[serde(default)]
    pub user: Option<User>,
    #[serde(default)]
    pub body: Option<String>,
    pub base: Branch,
    pub head: Branch,
    #[serde(default)]
    pub labels: Vec<Label>,
    #[serde(default)]
    pub created_at: Option<String>,
    #[serde(default)]
    pub updated_at: Option<String>,
    #[serde(default)]
    pub commits: u64,
    #[serde(default)]
    pub additions: u64,
    #[serde(default)]
    pub deletions: u64,
    #[serde(default)]
    pub changed_files: u64,
    #[serde(default)]
    pub comments: u64,
    #[serde(default)]
    pub review_comments: u64,
}

#[derive(Clone, Deserialize)]
pub struct File {
    pub filename: String,
    #[serde(default)]
    pub previous_filename: Option<String>,
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub additions: u64,
    #[serde(default)]
    pub deletions: u64,
    #[serde(default)]
    pub changes: u64,
    #[serde(default)]
    pub patch: Option<String>,
}

/// A comment on the pull request, or on a line of the diff.
#[derive(Deserialize)]
pub struct Comment {
    #[serde(default)]
    pub id: u64,
    #[serde(default)]
    pub in_reply_to_id: Option<u64>,
    #[serde(default)]
    pub user: Option<User>,
    #[serde(default)]
    pub body: Option<String>,
    #[serde(default)]
    pub created_at: String,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub line: Option<u64>,
    #[serde(default)]
    pub original_line: Option<u64>,
    #[serde(default)]
    pub subject_type: Option<String>,
}

#[derive(Deserialize)]
pub struct Review {
    #[serde(default)]
    pub user: Option<User>,
    #[serde(default)]
    pub body: Option<String>,
    #[serde(default)]
    pub state: String,
    #[serde(default)]
    pub submitted_at: Option<String>,
}

#[derive(Deserialize)]
pub struct CheckRuns {
    #[serde(default)]
    pub check_runs: Vec<CheckRun>,
}

#[derive(Deserialize)]
pub struct CheckRun {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub conclusion: Option<String>,
    #[serde(default)]
    pub html_url: Option<String>,
    #[serde(default)]
    pub output: Option<CheckRunOutput>,
}

#[derive(Deserialize)]
pub struct CheckRunOutput {
    #[serde(default)]
    pub title: Option<String>,
}

#[derive(Deserialize)]
pub struct CommitStatuses {
    #[serde(default)]
    pub statuses: Vec<CommitStatus>,
}

#[derive(Deserialize)]
pub struct CommitStatus {
    #[serde(default)]
    pub context: String,
    #[serde(default)]
    pub state: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub target_url: Option<String>,
}
