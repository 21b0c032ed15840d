//! Address of a pull request, and of its API. Only validated names become part of a URL.

use octo_toolkit::{Remedy, ToolError};
use url::Url;

pub fn url_remedy() -> Remedy {
    Remedy::settings(&["github.url"])
}
const PUBLIC_API: &str = "https://api.github.com/";

/// One pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRef {
    /// Root of the API.
    pub api: Url,
    /// Whether the token belongs to this root.
    pub gets_token: bool,
    pub owner: String,
    pub repository: String,
    pub number: u64,
}

impl PullRef {
    /// Parses a URL or `owner/repository#7`.
    pub fn parse(text: &str, configured: Option<&Url>) -> Result<Self, ToolError> {
        let text = text.trim();
        if let Some((owner, repository, number)) = short(text) {
            let (api, ours) = root(None, configured)?;
            return Self::validated(api, ours, owner, repository, number);
        }
        let whole = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
        let url = Url::parse(&whole).map_err(|_| unreadable())?;
        if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some()
        {
            return Err(unreadable());
        }
        let (api, ours) = root(Some(&url), configured)?;
        let parts: Vec<&str> = url.path_segments().ok_or_else(unreadable)?.collect();
        match parts.as_slice() {
            [owner, repository, "pull" | "pulls", number, ..]
            | ["repos", owner, repository, "pulls", number, ..]
            | ["api", "v3", "repos", owner, repository, "pulls", number, ..] => {
                Self::validated(api, ours, owner, repository, number)
            }
            _ => Err(unreadable()),
        }
    }

    fn validated(
        api: Url,
        ours: bool,
        owner: &str,
        repository: &str,
        number: &str,
    ) -> Result<Self, ToolError> {
        let number = number.parse().ok().filter(|number| *number > 0).ok_or_else(unreadable)?;
        if !is_name(owner) || !is_name(repository) {
            return Err(unreadable());
        }
        Ok(Self { api, gets_token: ours, owner: owner.to_owned(), repository: repository.to_owned(), number })
    }

    /// A URL of the repository's API.
    pub fn api_url(&self, parts: &[&str]) -> Result<Url, ToolError> {
        let mut url = self.api.clone();
        url.path_segments_mut()
            .map_err(|()| unfit())?
            .pop_if_empty()
            .extend(["repos", self.owner.as_str(), self.repository.as_str()])
            .extend(parts);
        Ok(url)
    }
}

fn short(text: &str) -> Option<(&str, &str, &str)> {
    let (name, number) = text.split_once('#')?;
    let (owner, repository) = name.split_once('/')?;
    (!repository.contains('/') && !owner.contains([':', '.'])).then_some((owner, repository, number))
}

/// API of the host in a URL; without a URL, the configured one.
fn root(url: Option<&Url>, configured: Option<&Url>) -> Result<(Url, bool), ToolError> {
    let public = Url::parse(PUBLIC_API).map_err(ToolError::internal)?;
    let ours = configured.cloned().unwrap_or_else(|| public.clone());
    let Some(url) = url else { return Ok((ours, true)) };
    let host = url.host_str().unwrap_or_default();
    if ours.host_str().is_some_and(|api| serves(api, host)) && same_port(&ours, url) {
        return Ok((ours, true));
    }
    if url.port().is_none() && public.host_str().is_some_and(|api| serves(api, host)) {
        return Ok((public, false));
    }
    Err(ToolError::denied("Not a pull request of github.com or of the configured GitHub server.")
        .hint("For GitHub Enterprise, ask the operator to set github.url to https://HOST/api/v3.")
        .remedy(url_remedy()))
}

/// The API of `github.com` is at `api.github.com`; an Enterprise server has both on one host.
fn serves(api: &str, host: &str) -> bool {
    let host = host.strip_prefix("www.").unwrap_or(host);
    api == host || api.strip_prefix("api.") == Some(host)
}

fn same_port(api: &Url, url: &Url) -> bool {
    api.port() == url.port()
}

/// A valid name of a user or repository, without special meaning in a path.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= 100 && name.bytes().all(plain) && !matches!(name, "." | "..")
}

fn unreadable() -> ToolError {
    ToolError::invalid("Not an address of a pull request.")
        .hint("Use https://github.com/OWNER/REPOSITORY/pull/NUMBER, or OWNER/REPOSITORY#NUMBER.")
}

fn unfit() -> ToolError {
    ToolError::unavailable("The address of GitHub's API is not an HTTP URL.")
        .hint("Ask the operator to check github.url.")
        .remedy(url_remedy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_toolkit::Kind;

    fn read(text: &str, configured: Option<&str>) -> Result<(String, bool), Kind> {
        let configured = configured.map(|url| url.parse().unwrap());
        let pull = PullRef::parse(text, configured.as_ref()).map_err(|error| error.kind)?;
        let number = pull.number.to_string();
        Ok((pull.api_url(&["pulls", &number]).unwrap().to_string(), pull.gets_token))
    }

    #[test]
    fn a_pull_request_is_named_in_many_ways() {
        let known = "https://api.github.com/repos/rust-lang/rust.rs/pulls/7";
        for text in [
            "https://github.com/rust-lang/rust.rs/pull/7",
            "http://www.github.com/rust-lang/rust.rs/pull/7/files#diff-1",
            "github.com/rust-lang/rust.rs/pull/7/commits/abc",
            "https://api.github.com/repos/rust-lang/rust.rs/pulls/7",
            " rust-lang/rust.rs#7 ",
            "https://github.com/rust-lang/rust.rs/pull/7?diff=split",
        ] {
            assert_eq!(read(text, None), Ok((known.to_owned(), true)), "{text}");
        }
        let own = Some("https://git.corp.example/api/v3");
        let there = "https://git.corp.example/api/v3/repos/a/b/pulls/7".to_owned();
        assert_eq!(read("https://git.corp.example/a/b/pull/7", own), Ok((there.clone(), true)));
        assert_eq!(read("https://git.corp.example/api/v3/repos/a/b/pulls/7", own), Ok((there.clone(), true)));
        assert_eq!(read("a/b#7", own), Ok((there, true)));
        assert_eq!(read("https://github.com/rust-lang/rust.rs/pull/7", own), Ok((known.to_owned(), false)));
        let cloud = Some("https://api.corp.ghe.com");
        let there = "https://api.corp.ghe.com/repos/a/b/pulls/7".to_owned();
        assert_eq!(read("https://corp.ghe.com/a/b/pull/7", cloud), Ok((there, true)));
    }

    #[test]
    fn other_addresses_are_refused() {
        for (text, kind) in [
            ("https://evil.example/a/b/pull/7", Kind::Denied),
            ("https://github.com.evil.example/a/b/pull/7", Kind::Denied),
            ("https://evil.example/github.com/a/b/pull/7", Kind::Denied),
            ("https://github.com@evil.example/a/b/pull/7", Kind::Invalid),
            ("https://user:word@github.com/a/b/pull/7", Kind::Invalid),
            ("https://github.com:8443/a/b/pull/7", Kind::Denied),
            ("https://xgithub.com/a/b/pull/7", Kind::Denied),
            ("ftp://github.com/a/b/pull/7", Kind::Invalid),
            ("file:///a/b/pull/7", Kind::Invalid),
            ("https://github.com/a/b/issues/7", Kind::Invalid),
            ("https://github.com/a/b/pull/x", Kind::Invalid),
            ("https://github.com/a/b/pull/0", Kind::Invalid),
            ("https://github.com/a/b/pull/-1", Kind::Invalid),
            ("https://github.com/a/b%2f..%2f../pull/7", Kind::Invalid),
            ("https://github.com/a%00/b/pull/7", Kind::Invalid),
            ("https://github.com/a/../b/pull/7", Kind::Invalid),
            ("a/..#7", Kind::Invalid),
            ("a/b c#7", Kind::Invalid),
            ("../b#7", Kind::Denied),
            ("", Kind::Invalid),
            ("7", Kind::Denied),
        ] {
            assert_eq!(read(text, None), Err(kind), "{text}");
        }
    }
}
