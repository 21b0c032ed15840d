//! URIs as rules see them. A server may treat several spellings alike, so a rule that denies is held against all of them.

use std::borrow::Cow;

/// A URI that was asked for, in every form that a rule may know it by.
pub struct UriSpellings {
    raw: String,
    normalized: String,
    /// Without the difference between a host and the first part of a path.
    loose: String,
    ambiguous: bool,
}

impl UriSpellings {
    pub fn of(uri: &str) -> Self {
        let normal = normalize(uri);
        Self {
            loose: loosen(&normal).into_owned(),
            ambiguous: is_ambiguous(uri),
            raw: uri.to_owned(),
            normalized: normal,
        }
    }

    /// Whether any form matches.
    pub fn any(&self, matches: impl Fn(&str) -> bool) -> bool {
        let bare =
            |form: &str| form.split(['#', '?']).next().unwrap_or_default().trim_end_matches('/').to_owned();
        let forms = [&self.raw, &self.normalized, &self.loose];
        forms.iter().any(|form| matches(form) || matches(&bare(form)))
    }

    /// Whether both what was written and what it means match.
    pub fn all(&self, matches: impl Fn(&str) -> bool) -> bool {
        matches(&self.raw) && matches(&self.normalized)
    }

    /// Whether it was written exactly so.
    pub fn is_exactly(&self, uri: &str) -> bool {
        self.raw == uri
    }

    /// Whether it is written so that servers may read it in different ways.
    pub fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }
}

/// A pattern of URIs, as opposed to names of tools.
pub fn is_uri_pattern(pattern: &str) -> bool {
    pattern.contains("://")
}

/// Written alike for `x:///a` and `x://a`.
pub fn loosen(uri: &str) -> Cow<'_, str> {
    match uri.split_once(":///") {
        Some((scheme, rest)) => Cow::Owned(format!("{scheme}://{}", rest.trim_start_matches('/'))),
        None => Cow::Borrowed(uri),
    }
}

/// The scheme and the host in lower case, nothing encoded that need not be, no dot segments, no double slashes.
fn normalize(uri: &str) -> String {
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
    // What climbs above the path may reach another host, for a server that sees only segments.
    let host = if above { String::new() } else { host };
    let slash = if path.is_empty() { "" } else { "/" };
    format!("{scheme}://{host}{slash}{}{tail}", segments.join("/"))
}

/// Percent-encoding undone, also where it is applied twice.
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

/// The byte that a text begins with in encoded form.
fn encoded_byte(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Encoded where it need not be, with dot segments, empty segments, backslashes, a user, or characters that are not shown.
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
