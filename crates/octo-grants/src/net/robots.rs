//! robots.txt of sites (RFC 9309), if enabled in the settings.

use super::{Net, NetRequest, NetResponse};
use http::StatusCode;
use octo_model::ToolError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use url::Url;

/// Product token of this program in robots.txt.
const PRODUCT_TOKEN: &str = "octoprox";
const MAX_ROBOTS_BYTES: usize = 500 << 10;
const MAX_SITES: usize = 256;
const CACHE_TTL: Duration = Duration::from_secs(3_600);
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Rules of visited sites, by origin.
#[derive(Default)]
pub(super) struct RobotsCache(Mutex<HashMap<String, (Instant, Arc<RobotsRules>)>>);

impl Net {
    /// Refuses a page that its site's robots.txt disallows, if the settings respect it.
    pub async fn check_robots(&self, url: &Url) -> Result<(), ToolError> {
        let Some(robots) = &self.0.robots else { return Ok(()) };
        let origin = url.origin().ascii_serialization();
        let rules = match robots.cached(&origin) {
            Some(rules) => rules,
            None => {
                let Ok(address) = url.join("/robots.txt") else { return Ok(()) };
                let ask = NetRequest {
                    timeout: FETCH_TIMEOUT,
                    max_bytes: MAX_ROBOTS_BYTES,
                    max_redirects: 5,
                    ..NetRequest::get(address)
                };
                // An unreachable site fails when the page itself is requested.
                let Ok(answer) = self.send(ask).await else { return Ok(()) };
                if let Some(error) = robots_error(url, answer.status) {
                    return Err(error);
                }
                robots.cache(origin, RobotsRules::from_response(&answer))
            }
        };
        if url.path() == "/robots.txt" || rules.allows(&rule_path(url)) {
            return Ok(());
        }
        Err(ToolError::denied(format!(
            "The robots.txt of {} disallows this page.",
            url.host_str().unwrap_or_default()
        ))
        .hint("Use another source; the operator decides with `net.respect_robots`."))
    }
}

/// A server error disallows everything for now, as RFC 9309 requires; a missing file allows everything.
fn robots_error(url: &Url, status: StatusCode) -> Option<ToolError> {
    (status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS).then(|| {
        let host = url.host_str().unwrap_or_default();
        ToolError::unavailable(format!(
            "The robots.txt of {host} cannot be read: status {}.",
            status.as_u16()
        ))
        .hint("Try again in a minute; the operator decides with `net.respect_robots`.")
    })
}

fn rule_path(url: &Url) -> String {
    match url.query() {
        Some(query) => decode_unreserved(&format!("{}?{query}", url.path())),
        None => decode_unreserved(url.path()),
    }
}

/// Decodes letters, digits and `-._~`, so that each path has one spelling.
fn decode_unreserved(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (before, escape) = rest.split_at_checked(at).unwrap_or((rest, ""));
        plain.push_str(before);
        let byte = escape.get(1..3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let letter = byte.map(char::from).filter(|c| c.is_ascii_alphanumeric() || "-._~".contains(*c));
        plain.push(letter.unwrap_or('%'));
        rest = escape.get(if letter.is_some() { 3 } else { 1 }..).unwrap_or_default();
    }
    plain + rest
}

impl RobotsCache {
    fn cached(&self, origin: &str) -> Option<Arc<RobotsRules>> {
        let sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, rules) = sites.get(origin)?;
        (at.elapsed() < CACHE_TTL).then(|| Arc::clone(rules))
    }

    fn cache(&self, origin: String, rules: RobotsRules) -> Arc<RobotsRules> {
        let rules = Arc::new(rules);
        let mut sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sites.len() >= MAX_SITES {
            sites.retain(|_, (at, _)| at.elapsed() < CACHE_TTL);
        }
        if sites.len() >= MAX_SITES {
            sites.clear();
        }
        sites.insert(origin, (Instant::now(), Arc::clone(&rules)));
        rules
    }
}

/// Rules for this program: each path with whether it is allowed.
#[derive(Debug, Default, PartialEq, Eq)]
struct RobotsRules(Vec<(String, bool)>);

impl RobotsRules {
    fn from_response(answer: &NetResponse) -> Self {
        match answer.status {
            status if status.is_success() => Self::parse(&String::from_utf8_lossy(&answer.body)),
            _ => Self::default(),
        }
    }

    /// Uses the groups that name this program, or else those for `*`.
    fn parse(text: &str) -> Self {
        let (mut own, mut common) = (None::<Vec<(String, bool)>>, Vec::new());
        let (mut for_us, mut for_all, mut in_rules) = (false, false, true);
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = &*decode_unreserved(value.trim());
            let allows = match key.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    if std::mem::take(&mut in_rules) {
                        (for_us, for_all) = (false, false);
                    }
                    for_us |= value.to_ascii_lowercase().starts_with(PRODUCT_TOKEN);
                    for_all |= value == "*";
                    if for_us {
                        own.get_or_insert_default();
                    }
                    continue;
                }
                "allow" => true,
                "disallow" => false,
                _ => continue,
            };
            in_rules = true;
            if value.is_empty() {
                continue;
            }
            if for_us {
                own.get_or_insert_default().push((value.to_owned(), allows));
            }
            if for_all {
                common.push((value.to_owned(), allows));
            }
        }
        Self(own.unwrap_or(common))
    }

    /// The longest matching rule decides; of two equal ones the one that allows.
    fn allows(&self, path: &str) -> bool {
        let fitting = self.0.iter().filter(|(pattern, _)| matches_pattern(pattern, path));
        fitting.max_by_key(|(pattern, allows)| (pattern.len(), *allows)).is_none_or(|(_, allows)| *allows)
    }
}

/// `*` matches any text, `$` at the end anchors the end.
fn matches_pattern(pattern: &str, path: &str) -> bool {
    let (pattern, whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        if whole && last {
            return rest.ends_with(part);
        }
        let Some(found) = rest.find(part) else { return false };
        rest = rest.get(found + part.len()..).unwrap_or_default();
    }
    !whole || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rule_decides() {
        let text = "# all\nUser-agent: other\nDisallow: /\n\nUser-Agent: *\nDisallow: /private # not this\nAllow: /private/open\nDisallow: /*.pdf$\nDisallow:\n";
        let rules = RobotsRules::parse(text);
        for (path, allowed) in [
            ("/", true),
            ("/private", false),
            ("/private/x", false),
            ("/private/open/x", true),
            ("/a/b.pdf", false),
            ("/a/b.pdf?x", true),
        ] {
            assert_eq!(rules.allows(path), allowed, "{path}");
        }
        let own = RobotsRules::parse(
            "user-agent: *\ndisallow: /\nuser-agent: a\nuser-agent: Octoprox\nallow: /a\ndisallow: /\n",
        );
        assert!(own.allows("/a/b") && !own.allows("/b"));
        assert!(RobotsRules::parse("").allows("/x") && RobotsRules::parse("nonsense\n:::\n").allows("/x"));
        assert!(
            RobotsRules::parse("user-agent: octoprox\ndisallow:\nuser-agent: *\ndisallow: /").allows("/x")
        );
    }

    #[test]
    fn patterns_match_from_the_start() {
        for (pattern, path, fit) in [
            ("/a", "/ab", true),
            ("/a$", "/ab", false),
            ("/a*c", "/abcd", true),
            ("/a*c$", "/abcd", false),
            ("/a*c$", "/abc", true),
            ("*b", "/ab", true),
            ("/x", "/a/x", false),
            ("/*/*/x", "/a/b/x", true),
        ] {
            assert_eq!(matches_pattern(pattern, path), fit, "{pattern} {path}");
        }
    }
}
