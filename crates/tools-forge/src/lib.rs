//! The toolboxes of the forges: GitLab's API, and pull requests on GitHub. Everything goes out through the `Net` grant.

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

/// The tools of the domain `gitlab`.
pub fn gitlab_toolbox(settings: GitlabSettings) -> Toolbox {
    gitlab::tools(Arc::new(gitlab::Instance::new(settings)))
}

/// The tools of the domain `github`.
pub fn github_toolbox(settings: GithubSettings) -> Toolbox {
    Toolbox::new("github", "Reads pull requests on GitHub.").with(github::PullRequest::new(settings))
}

#[cfg(test)]
mod tests;
