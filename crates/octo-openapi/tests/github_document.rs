//! GitHub's OpenAPI document: its cost, and the quality of the search.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reads the document that was installed for it, and fails where a promise is broken"
)]

use octo_openapi::Document;
use std::time::Instant;

/// Questions of people, and the operations that answer them.
const QUESTIONS: [(&str, &[&str]); 50] = [
    ("open a new issue in a repository", &["issues/create"]),
    ("merge a pull request", &["pulls/merge"]),
    ("who am I logged in as", &["users/get-authenticated"]),
    ("which files were changed in a pull request", &["pulls/list-files"]),
    ("delete a branch", &["git/delete-ref"]),
    ("star a repository", &["activity/star-repo-for-authenticated-user"]),
    ("add labels to an issue", &["issues/add-labels"]),
    ("invite somebody to an organization", &["orgs/create-invitation"]),
    ("trigger a workflow manually", &["actions/create-workflow-dispatch"]),
    ("rerun the failed jobs of a workflow run", &["actions/re-run-workflow-failed-jobs"]),
    ("download the logs of a workflow run", &["actions/download-workflow-run-logs"]),
    ("show the readme", &["repos/get-readme"]),
    ("fork a repo", &["repos/create-fork"]),
    ("search in source code", &["search/code"]),
    ("make a new gist", &["gists/create"]),
    ("my notifications", &["activity/list-notifications-for-authenticated-user"]),
    ("protect a branch", &["repos/update-branch-protection"]),
    ("what is the latest release", &["repos/get-latest-release"]),
    ("write a comment on an issue", &["issues/create-comment"]),
    ("ask someone to review a PR", &["pulls/request-reviewers"]),
    ("compare two commits", &["repos/compare-commits-with-basehead", "repos/compare-commits"]),
    ("add a webhook to a repository", &["repos/create-webhook"]),
    ("remove a collaborator from a repo", &["repos/remove-collaborator"]),
    ("read the contents of a file", &["repos/get-content"]),
    ("change a file in a repository", &["repos/create-or-update-file-contents"]),
    ("close a milestone", &["issues/update-milestone"]),
    ("how much of my rate limit is left", &["rate-limit/get"]),
    ("list branches", &["repos/list-branches"]),
    ("set an actions secret for a repository", &["actions/create-or-update-repo-secret"]),
    ("who is a member of a team", &["teams/list-members-in-org"]),
    ("lock the conversation on an issue", &["issues/lock"]),
    ("transfer a repository to another owner", &["repos/transfer"]),
    ("attach a file to a release", &["repos/upload-release-asset"]),
    ("add an ssh key to my account", &["users/create-public-ssh-key-for-authenticated-user"]),
    ("render markdown as html", &["markdown/render"]),
    ("block a user", &["users/block", "orgs/block-user"]),
    ("list commits", &["repos/list-commits"]),
    ("stop a running workflow", &["actions/cancel-workflow-run"]),
    ("assign people to an issue", &["issues/add-assignees"]),
    ("approve a deployment that waits for review", &["actions/review-pending-deployments-for-run"]),
    ("which programming languages does a repo use", &["repos/list-languages"]),
    ("dismiss a dependabot alert", &["dependabot/update-alert"]),
    ("list code scanning alerts of a repository", &["code-scanning/list-alerts-for-repo"]),
    (
        "create a codespace",
        &["codespaces/create-for-authenticated-user", "codespaces/create-with-repo-for-authenticated-user"],
    ),
    ("delete a repository", &["repos/delete"]),
    ("rename a branch", &["repos/rename-branch"]),
    ("followers of a user", &["users/list-followers-for-user"]),
    ("react to an issue comment with an emoji", &["reactions/create-for-issue-comment"]),
    ("get the topics of a repository", &["repos/get-all-topics"]),
    ("bring a pull request up to date with its base", &["pulls/update-branch"]),
];

fn text() -> String {
    let file = std::env::var("GITHUB_OPENAPI");
    let file = file.expect("GITHUB_OPENAPI is not set: run eval \"$(scripts/services env)\" first");
    std::fs::read_to_string(file).unwrap()
}

/// Peak memory of this process, in megabytes. Each test runs in its own process.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn a_large_document_loads_quickly_and_stays_small() {
    let text = text();
    let start = Instant::now();
    let document = Document::parse(text).unwrap();
    let (took, peak) = (start.elapsed(), peak());
    let count = document.operations().len();
    println!("github: {count} operations in {took:?}, peak {peak} MB, {} left out", document.skipped.len());
    assert!(count > 1_000, "{count}");
    assert_eq!(document.skipped, Vec::<String>::new());
    assert!(took.as_secs_f64() < 3.0, "{took:?}");
    assert!(peak < 300, "{peak} MB");
}

#[test]
fn the_right_operation_is_among_the_first_five() {
    let document = Document::parse(text()).unwrap();
    let start = Instant::now();
    let mut missed = Vec::new();
    for (question, right) in QUESTIONS {
        let found: Vec<&str> =
            document.search(question).iter().take(5).map(|listed| listed.id.as_str()).collect();
        if !right.iter().any(|right| found.contains(right)) {
            missed.push(format!("{question}: {}", found.join(" ")));
        }
    }
    let found = QUESTIONS.len() - missed.len();
    println!("search: {found} of {} among the first five, {:?} each", QUESTIONS.len(), start.elapsed() / 50);
    println!("missed:\n{}", missed.join("\n"));
    assert!(found >= 40, "{found}");
}

#[test]
fn every_operation_unfolds_and_every_one_can_be_asked_for() {
    let document = Document::parse(text()).unwrap();
    let base = document.base(None, &octo_openapi::ServerOptions::default()).unwrap();
    for listed in document.operations() {
        let operation = document.operation(&listed.path, &listed.method).unwrap();
        let mut unfold = octo_openapi::RefInliner::new(&document, 500, 3);
        for answer in &operation.responses {
            answer.media.iter().for_each(|media| drop(unfold.inline(&media.schema)));
        }
        let mut given = octo_openapi::RequestValues::default();
        for param in operation.params.iter().filter(|param| param.required) {
            let value = octo_openapi::sample(
                &document,
                &param.schema,
                octo_openapi::SampleMembers::RequiredAndOptional,
            );
            let place = if param.location == octo_openapi::ParamLocation::Path {
                &mut given.path
            } else {
                &mut given.query
            };
            place.insert(param.name.clone(), value);
        }
        given.body = operation.body.as_ref().and_then(|body| body.media.first()).map(|media| {
            octo_openapi::sample(&document, &media.schema, octo_openapi::SampleMembers::Required)
        });
        let request = document.request(&operation, &base, &given, "b");
        let request = request.unwrap_or_else(|error| panic!("{} {}: {error}", listed.method, listed.path));
        assert_eq!(request.url.host_str(), Some("api.github.com"));
    }
}
