//! GitHub: where its API is, and pull requests as one answer.

mod api_types;
mod changed_files;
mod checks;
mod comments;
mod github_api;
mod pull_diff;
mod pull_output;
mod pull_request;
mod pull_url;

use octo_toolkit::Secret;
pub use pull_request::PullRequest;
use url::Url;

#[derive(Clone, Default)]
pub struct GithubSettings {
    /// Root of the API of a GitHub Enterprise server, such as `https://github.example.com/api/v3`; api.github.com when
    /// absent. Pull requests on github.com can be read in either case.
    pub url: Option<Url>,
    /// Sent to the origin of `url` and nowhere else; without it 60 requests per hour go to github.com.
    pub token: Option<Secret>,
}
