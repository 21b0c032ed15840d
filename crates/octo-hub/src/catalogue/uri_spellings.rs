//! Normalization of URIs for rules. A server may treat several spellings alike, so a deny rule is checked
//! against all of them.

use crate::catalogue::scoped_uris::{self, to_own, to_scoped};
use std::borrow::Cow;

/// A requested URI in every form that a rule may match.
pub struct UriSpellings {
    raw: String,
    normalized: String,
    /// Without the distinction between a host and the first path segment.
    loose: String,
    /// As its server knows it, if clients get it with the name of the server: raw and normalized.
    own: Option<[String; 2]>,
    ambiguous: bool,
}

impl UriSpellings {
    pub fn of(uri: &str) -> Self {
        let own = scoped_uris::named_server(uri).and_then(|server| Some((server, to_own(server, uri)?)));
        // The server's own host is behind its name.
        let normal = match &own {
            Some((server, own)) => to_scoped(server, &normalize(own)).unwrap_or_else(|| normalize(uri)),
            None => normalize(uri),
        };
        Self {
            loose: loosen(&normal).into_owned(),
            ambiguous: is_ambiguous(uri) || own.as_ref().is_some_and(|(_, own)| is_ambiguous(own)),
            own: own.map(|(_, own)| [normalize(&own), own]),
            raw: uri.to_owned(),
            normalized: normal,
        }
    }

    /// Returns whether any form matches.
    pub fn any(&self, matches: impl Fn(&str) -> bool) -> bool {
        let bare =
            |form: &str| form.split(['#', '?']).next().unwrap_or_default().trim_end_matches('/').to_owned();
        let forms = [&self.raw, &self.normalized, &self.loose];
        forms.into_iter().chain(self.own.iter().flatten()).any(|form| matches(form) || matches(&bare(form)))
    }

    /// Returns whether both the raw and the normalized form match.
    pub fn all(&self, matches: impl Fn(&str) -> bool) -> bool {
        matches(&self.raw) && matches(&self.normalized)
    }

    /// Returns whether the raw form is exactly `uri`.
    pub fn is_exactly(&self, uri: &str) -> bool {
        self.raw == uri
    }

    /// Returns whether servers may interpret it in different ways.
    pub fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }
}

/// Returns whether a pattern is for URIs rather than tool names.
pub fn is_uri_pattern(pattern: &str) -> bool {
    pattern.contains("://")
}

/// Same result for `x:///a` and `x://a`.
pub fn loosen(uri: &str) -> Cow<'_, str> {
    match uri.split_once(":///") {
        Some((scheme, rest)) => Cow::Owned(format!("{scheme}://{}", rest.trim_start_matches('/'))),
        None => Cow::Borrowed(uri),
    }
}

/// Lower-case scheme and host, no needless percent-encoding, no dot segments, no double slashes.
pub(crate) fn normalize(uri: &str) -> String {
    let decoded = percent_decode(uri).replace('\\', "/");
    let Some((scheme, rest)) = decoded.split_once(':') else { return decoded };
    let scheme = scheme.to_lowercase();
    let Some(rest) = rest.strip_prefix("//") else { return format!("{scheme}:{rest}") };
    let (host, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let host = host.rsplit('@').next().unwrap_or_default().trim_end_matches('.').to_lowercase();
    let mut segments: Vec<&str> = Vec::new();
    let mut above = false;
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        match segment {
            "." => {}
            ".." => above |= segments.pop().is_none(),
            other => segments.push(other),
        }
    }
    let tail = if path.len() > 1 && path.ends_with('/') { "/" } else { "" };
    // A path that climbs above its root may reach another host on a server that only looks at segments.
    let host = if above { String::new() } else { host };
    let slash = if path.is_empty() { "" } else { "/" };
    format!("{scheme}://{host}{slash}{}{tail}", segments.join("/"))
}

/// Undoes percent-encoding, also if applied more than once.
fn percent_decode(uri: &str) -> String {
    let mut text = uri.to_owned();
    for _ in 0..3 {
        let once = percent_decode_once(&text);
        if once == text {
            break;
        }
        text = once;
    }
    text
}

fn percent_decode_once(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = match (first, encoded_byte(rest)) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                tail.get(2..).unwrap_or_default()
            }
            _ => {
                bytes.push(*first);
                tail
            }
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Decodes the percent-encoded byte at the start of `text`.
fn encoded_byte(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Needless percent-encoding, dot segments, empty segments, backslashes, user info or invisible characters.
fn is_ambiguous(uri: &str) -> bool {
    let bytes = uri.as_bytes();
    let needless = |at: usize| {
        encoded_byte(bytes.get(at..).unwrap_or_default())
            .is_none_or(|byte| byte.is_ascii_alphanumeric() || byte < 0x20 || b"-._~/\\%:@?#".contains(&byte))
    };
    let encodings = (0..bytes.len()).filter(|at| bytes.get(*at) == Some(&b'%'));
    let Some((_, rest)) = uri.split_once(':') else { return true };
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let mut segments = path.split('/').skip(1).peekable();
    let mut odd = false;
    while let Some(segment) = segments.next() {
        odd |= matches!(segment, "." | "..") || (segment.is_empty() && segments.peek().is_some());
    }
    odd || host.contains('@')
        || uri.contains(|c: char| c == '\\' || c.is_control() || c.is_whitespace())
        || encodings.into_iter().any(needless)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_address_become_one() {
        for (uri, wanted) in [
            ("X://Host/a", "x://host/a"),
            ("x://host//a/./b/../c", "x://host/a/c"),
            ("x://h%6Fst/%61%2Fb", "x://host/a/b"),
            ("x://host/%252e%252e/a", "x:///a"),
            ("x://me@host./a/", "x://host/a/"),
            ("x:\\\\host\\a", "x://host/a"),
            ("mailto:A", "mailto:A"),
            ("file:///a/b", "file:///a/b"),
            ("x://host", "x://host"),
        ] {
            assert_eq!(normalize(uri), wanted, "{uri}");
        }
        assert_eq!(loosen("x:////a/b"), "x://a/b");
    }

    #[test]
    fn the_host_of_an_app_is_behind_the_name_of_its_server() {
        for uri in
            ["ui://maps/private/k", "ui://maps/PRIVATE/k", "UI://maps/private./k", "ui://maps/x@private/k"]
        {
            let spellings = UriSpellings::of(uri);
            assert!(spellings.any(|form| form == "ui://maps/private/k"), "{uri}");
            assert!(spellings.any(|form| form == "ui://private/k"), "{uri}");
        }
        assert!(UriSpellings::of("ui://maps/x@private/k").is_ambiguous());
        assert!(!UriSpellings::of("ui://maps/private/k").is_ambiguous());
        assert!(
            !UriSpellings::of("ui://maps/private/k").all(|form| form == "ui://private/k"),
            "not for allow rules"
        );
    }

    #[test]
    fn plain_addresses_are_not_ambiguous() {
        for (uri, ambiguous) in [
            ("x://host/a/b?q=1#f", false),
            ("file:///a/b%20c", false),
            ("x://host/%C3%A9", false),
            ("x://host/a/", false),
            ("x://host/a//b", true),
            ("x://host/%61", true),
            ("x://host/a%2Fb", true),
            ("x://host/..", true),
            ("x://host/a\\b", true),
            ("x://host/a b", true),
            ("x://host/%zz", true),
            ("x://u@host/a", true),
            ("no-scheme", true),
        ] {
            assert_eq!(is_ambiguous(uri), ambiguous, "{uri}");
        }
    }
}
