//! `github_pull_request`.

use super::github_api::{GithubApi, PullRequestFetch};
use super::pull_output::{Output, PullDetails};
use super::pull_url::PullRef;
use super::{GithubSettings, api_types};
use octo_toolkit::{CallContext, Clock, Effect, Example, Net, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::atomic::AtomicU64;
use url::Url;

/// Reads a pull request on GitHub: description, files, diff, comments, reviews and checks, each as far as it fits;
/// `next`
/// returns how to get the rest. Fails if it does not exist or is private. Prefer git_diff_structured for local changes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Address, such as https://github.com/OWNER/REPOSITORY/pull/7, or OWNER/REPOSITORY#7.
    pub url: String,
    /// Which parts to read besides the description; default all.
    #[serde(default)]
    pub include: Option<Vec<Part>>,
    /// Only the diff of this file and the threads on it.
    #[serde(default)]
    pub file: Option<String>,
    /// Files to skip in the list; from next.
    #[serde(default)]
    pub files_offset: u64,
    /// Byte of the diff to start at; from next.
    #[serde(default)]
    pub diff_offset: u64,
    /// Comments to skip; from next.
    #[serde(default)]
    pub comments_offset: u64,
    /// Maximum bytes to return, 4,000 to 400,000.
    #[serde(default = "default_max_bytes")]
    pub max_bytes: u64,
}

fn default_max_bytes() -> u64 {
    60_000
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    Files,
    Diff,
    Comments,
    Reviews,
    Checks,
}

pub struct PullRequest {
    api: GithubApi,
    url: Option<Url>,
}

impl PullRequest {
    pub fn new(settings: GithubSettings) -> Self {
        Self { api: GithubApi::new(settings.token), url: settings.url }
    }
}

impl Tool for PullRequest {
    const NAME: &'static str = "github_pull_request";
    const TITLE: &'static str = "Read a pull request";
    const KEYWORDS: &'static str = "PR review merge request comments checks CI";
    const REQUESTS: &'static [&'static str] = &[
        "review PR 128 on github",
        "have the checks of the pull request passed",
        "what did reviewers say about my change on github",
        "read the diff of owner/repo#7",
        "is the pull request approved and mergeable",
        "comments on lines of src/lib.rs in someone's github contribution",
        "which files does this github proposal touch",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = (Net, Clock);

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "All of it, as far as it fits",
                json!({"url": "https://github.com/rust-lang/rust/pull/1"}),
            ),
            Example::new(
                "The diff of one file",
                json!({"url": "rust-lang/rust#1", "include": ["diff"], "file": "src/lib.rs"}),
            ),
        ]
    }

    async fn run(
        &self,
        input: Input,
        (net, clock): (Net, Clock),
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        if !(4_000..=400_000).contains(&input.max_bytes) {
            return Err(
                ToolError::invalid("max_bytes must be 4,000 to 400,000.").hint("The default is 60,000.")
            );
        }
        let named = PullRef::parse(&input.url, self.url.as_ref())?;
        let errand = PullRequestFetch {
            api: &self.api,
            net: &net,
            cx,
            pull: &named,
            now: clock.now(),
            bypass_cache: !input.goes_on(),
            request_count: AtomicU64::new(0),
            requests_left: AtomicU64::new(u64::MAX),
        };
        let number = named.number.to_string();
        let (pull, _) = errand.json::<api_types::PullRequestBody>(&["pulls", &number], None).await?;
        let packet = PullDetails::read(&errand, &pull, &input).await?;
        Ok(packet.into_output(pull, &input, &errand))
    }
}

impl Input {
    pub fn wants(&self, part: Part) -> bool {
        self.include.as_ref().is_none_or(|include| include.contains(&part))
    }

    /// Whether this call continues an earlier one.
    fn goes_on(&self) -> bool {
        self.files_offset > 0 || self.diff_offset > 0 || self.comments_offset > 0 || self.file.is_some()
    }
}
