//! Parser of the `WWW-Authenticate` challenge of a server.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// Longer headers are ignored.
const MAX_HEADER_LEN: usize = 8192;
const MAX_SCOPES: usize = 64;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// URL of the protected resource metadata.
    pub(crate) metadata_url: Option<String>,
    /// Scopes that the refused request needs.
    pub(crate) scopes: Vec<String>,
    error: Option<String>,
}

impl Challenge {
    /// Whether the login is valid but lacks scopes.
    pub(crate) fn needs_more_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// Returns the Bearer challenge, if any.
pub(crate) fn parse(headers: &HeaderMap) -> Option<Challenge> {
    let values = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    values.filter(|text| text.len() <= MAX_HEADER_LEN).find_map(parse_bearer)
}

fn parse_bearer(text: &str) -> Option<Challenge> {
    let mut rest = text;
    let mut found: Option<Challenge> = None;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at_checked(end)?;
        if word.is_empty() {
            return found;
        }
        match after.trim_start().strip_prefix('=') {
            // A name without a value starts the next scheme.
            None if found.is_some() => return found,
            None => {
                found = word.eq_ignore_ascii_case("bearer").then(Challenge::default);
                rest = after;
            }
            Some(after) => {
                let (value, after) = parse_value(after.trim_start());
                if let Some(found) = &mut found {
                    found.set(word, value);
                }
                rest = after;
            }
        }
    }
}

impl Challenge {
    fn set(&mut self, name: &str, value: String) {
        match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => self.metadata_url = Some(value),
            "scope" => self.scopes = parse_scopes(&value),
            "error" => self.error = Some(value),
            _ => {}
        }
    }
}

/// Space-separated scopes, without duplicates.
pub(crate) fn parse_scopes(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for word in text.split_ascii_whitespace().take(MAX_SCOPES) {
        if !all.iter().any(|known| known == word) {
            all.push(word.to_owned());
        }
    }
    all
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// Parses a value with or without quotes; returns it and the rest.
fn parse_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, after) = text.split_at_checked(end).unwrap_or((text, ""));
        return (value.to_owned(), after);
    };
    let mut value = String::new();
    let mut escaped = false;
    for (at, c) in quoted.char_indices() {
        match c {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => return (value, quoted.get(at + 1..).unwrap_or_default()),
            c => {
                escaped = false;
                value.push(c);
            }
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Option<Challenge> {
        let values = values.iter().map(|value| (WWW_AUTHENTICATE, value.parse().unwrap()));
        parse(&values.collect())
    }

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        let full = Challenge {
            metadata_url: Some("https://x.example/.well-known/a".into()),
            scopes: vec!["a:b".into(), "c".into()],
            error: Some("insufficient_scope".into()),
        };
        let url = "https://x.example/.well-known/a";
        for text in [
            format!(r#"Bearer resource_metadata="{url}", scope="a:b c", error="insufficient_scope""#),
            format!(
                r#"bearer realm="x, y=\"z\"",scope="a:b c a:b" ,error=insufficient_scope,RESOURCE_METADATA="{url}""#
            ),
            format!(
                r#"Basic realm="q", Bearer scope="a:b c", error = "insufficient_scope", resource_metadata="{url}", Digest nonce="1""#
            ),
        ] {
            assert_eq!(of(&[&text]).as_ref(), Some(&full), "{text}");
            assert_eq!(of(&["Negotiate", &text]).as_ref(), Some(&full), "{text}");
        }
        assert!(full.needs_more_scope());
        assert_eq!(of(&["Bearer"]), Some(Challenge::default()));
    }

    #[test]
    fn what_is_none_is_none() {
        for text in ["", "Basic realm=\"x\"", "Negotiate abc==", "=", "\"", "Bearer2 scope=x", ",,,"] {
            assert_eq!(of(&[text]), None, "{text}");
        }
        assert_eq!(of(&[&format!("Bearer scope=\"{}\"", "x".repeat(MAX_HEADER_LEN))]), None);
        assert_eq!(of(&["Bearer scope=\"never closed"]).unwrap().scopes, ["never", "closed"]);
        assert_eq!(of(&[]), None);
    }
}
