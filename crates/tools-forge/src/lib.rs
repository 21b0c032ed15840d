//! Forge toolboxes: GitLab's API, and pull requests on GitHub. All requests use the `Net` grant.

mod byte_budget;
#[cfg(test)]
mod fake_server;
mod forge_http;
mod forge_token;
mod github;
mod gitlab;

pub use github::GithubSettings;
pub use gitlab::{GitlabSettings, TokenKind};
use octo_toolkit::Toolbox;
use std::sync::Arc;

/// Tools of the domain `gitlab`.
pub fn gitlab_toolbox(settings: GitlabSettings) -> Toolbox {
    gitlab::tools(Arc::new(gitlab::Instance::new(settings)))
}

/// Tools of the domain `github`.
pub fn github_toolbox(settings: GithubSettings) -> Toolbox {
    Toolbox::new("github", "Reads pull requests on GitHub.").with(github::PullRequest::new(settings))
}

#[cfg(test)]
mod tests;
