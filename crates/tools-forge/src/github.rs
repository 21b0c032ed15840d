//! GitHub: location of its API, and pull requests as one reply.

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
    /// Root of the API of a GitHub Enterprise server, such as `https://github.example.com/api/v3`; default
    /// api.github.com. Pull requests on github.com can be read in either case.
    pub url: Option<Url>,
    /// Sent to the origin of `url` only; without it github.com allows 60 requests per hour.
    pub token: Option<Secret>,
}
