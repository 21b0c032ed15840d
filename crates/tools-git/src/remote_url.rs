//! Addresses of other repositories: https, http, ssh, or a directory of the workspace. Nothing that starts a program.

use octo_toolkit::ToolError;

/// Type of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteUrl {
    /// HTTP server.
    Web { host: String, port: u16 },
    /// Host in `known_hosts` format, and its parts for `ssh-keyscan`.
    Ssh { host: String, port: Option<u16> },
    /// A path that is not resolved yet.
    Local(String),
}

pub fn parse(text: &str) -> Result<RemoteUrl, ToolError> {
    if text.trim().is_empty()
        || text.len() > 2_000
        || text.starts_with('-')
        || text.chars().any(char::is_control)
    {
        return Err(invalid_url(
            "It is empty, too long, starts with a dash or contains a control character.",
        ));
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        return match scheme.to_ascii_lowercase().as_str() {
            "https" => web(rest, 443),
            "http" => web(rest, 80),
            "ssh" | "git+ssh" | "ssh+git" => {
                authority(rest).map(|(host, port)| RemoteUrl::Ssh { host, port })
            }
            "file" => Ok(RemoteUrl::Local(rest.to_owned())),
            _ => Err(invalid_url("Its scheme is not https, http or ssh.")),
        };
    }
    let before_slash = text.split('/').next().unwrap_or(text);
    if before_slash.contains("::") {
        return Err(invalid_url("It names a helper program."));
    }
    match before_slash.split_once(':') {
        None => Ok(RemoteUrl::Local(text.to_owned())),
        Some((who, _)) => {
            let path = text.split_once(':').map_or("", |(_, path)| path);
            if path.is_empty() || path.starts_with('-') {
                return Err(invalid_url("It has no path after the colon."));
            }
            authority(who).map(|(host, port)| RemoteUrl::Ssh { host, port })
        }
    }
}

fn web(rest: &str, usual: u16) -> Result<RemoteUrl, ToolError> {
    authority(rest).map(|(host, port)| RemoteUrl::Web { host, port: port.unwrap_or(usual) })
}

/// Host and port of `user@host:port/path`.
fn authority(rest: &str) -> Result<(String, Option<u16>), ToolError> {
    let rest = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let (user, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let (host, port) = match place.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    let dash = |text: &str| text.starts_with('-');
    if host.is_empty()
        || dash(host)
        || dash(user)
        || !host.chars().all(plain)
        || user.contains(char::is_whitespace)
    {
        return Err(invalid_url("Its host or user contains invalid characters."));
    }
    let port = match port {
        None | Some("") => None,
        Some(port) => Some(port.parse().map_err(|_| invalid_url("Its port is not a number."))?),
    };
    Ok((host.to_owned(), port))
}

fn invalid_url(why: &str) -> ToolError {
    ToolError::denied(format!("This address of a repository is not accepted. {why}"))
        .hint("Use https://host/path, ssh://git@host/path, git@host:path, or a directory in the workspace.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_addresses_pass() {
        let ssh = |host: &str, port| RemoteUrl::Ssh { host: host.to_owned(), port };
        let web = |host: &str, port| RemoteUrl::Web { host: host.to_owned(), port };
        let local = |path: &str| RemoteUrl::Local(path.to_owned());
        let rows = [
            ("https://example.org/a/b.git", web("example.org", 443)),
            ("http://127.0.0.1:8080/x", web("127.0.0.1", 8080)),
            ("http://[::1]/x", web("::1", 80)),
            ("https://u:p@example.org/x", web("example.org", 443)),
            ("ssh://git@example.org:2222/x.git", ssh("example.org", Some(2222))),
            ("git@example.org:team/x.git", ssh("example.org", None)),
            ("example.org:x", ssh("example.org", None)),
            ("ssh://git@[::1]:22/x", ssh("::1", Some(22))),
            ("../other", local("../other")),
            ("/roots/a/b:c", local("/roots/a/b:c")),
            ("file:///roots/a", local("/roots/a")),
        ];
        for (text, url) in rows {
            assert_eq!(parse(text).unwrap(), url, "{text}");
        }
    }

    #[test]
    fn programs_and_options_are_refused() {
        for text in [
            "",
            "-x",
            "--upload-pack=touch x",
            "ext::sh -c touch%20x",
            "fd::17",
            "git://example.org/x",
            "ftp://x/y",
            "ssh://-oProxyCommand=x/y",
            "git@-oProxyCommand=x:y",
            "-o@host:x",
            "host:-x",
            "host:",
            "https://",
            "a\nb",
            "https://a b/c",
            "ext::x://y",
            "ssh://h:port/x",
            "transport::https://x/y",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
