//! Same-site check of two URLs: the same origin, or https names under one registrable domain.

use url::{Host, Url};

/// `a.example.org` and `b.example.org` are one site; `a.github.io` and `b.github.io` are two. A name whose suffix is
/// not on the public suffix list is only on the same site as itself.
pub fn is_same_site(one: &Url, other: &Url) -> bool {
    if one.origin() == other.origin() {
        return true;
    }
    let domains = [one, other].map(registrable_domain);
    matches!(domains, [Some(first), Some(second)] if first == second)
}

fn registrable_domain(url: &Url) -> Option<String> {
    match url.host() {
        Some(Host::Domain(name)) if url.scheme() == "https" => {
            let name = name.strip_suffix('.').unwrap_or(name);
            let domain = psl::domain(name.as_bytes()).filter(|domain| domain.suffix().is_known())?;
            std::str::from_utf8(domain.as_bytes()).ok().map(str::to_ascii_lowercase)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_an_origin_or_a_registrable_domain() {
        for (one, other, same) in [
            ("https://login.example.org", "https://login.example.org/token", true),
            ("https://login.example.org", "https://api.example.org:8443/token", true),
            ("https://example.org", "https://api.login.example.org/token", true),
            ("https://LOGIN.example.org", "https://login.EXAMPLE.org./token", true),
            ("https://a.example.co.uk", "https://b.example.co.uk", true),
            ("https://a.co.uk", "https://b.co.uk", false),
            ("https://a.github.io", "https://b.github.io", false),
            ("https://example.org", "https://example.org.evil.net", false),
            ("https://example.org", "https://evilexample.org", false),
            ("https://example.org", "http://api.example.org", false),
            ("https://a.corp.internal", "https://b.corp.internal", false),
            ("https://co.uk", "https://co.uk:1/", false),
            ("http://127.0.0.1:1", "http://127.0.0.1:1/token", true),
            ("http://127.0.0.1:1", "http://127.0.0.1:2/token", false),
            ("https://192.0.2.1", "https://192.0.2.1:8443", false),
            ("https://[2001:db8::1]", "https://[2001:db8::2]", false),
            ("http://localhost:1", "http://localhost:2", false),
        ] {
            let [first, second] = [one, other].map(|url| Url::parse(url).unwrap());
            assert_eq!(is_same_site(&first, &second), same, "{one} {other}");
            assert_eq!(is_same_site(&second, &first), same, "{other} {one}");
        }
    }
}
