//! URLs of results: deduplication and removal of tracking parameters.

use url::Url;

const TRACKING_PARAMS: &[&str] = &[
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "dclid",
    "fbclid",
    "gbraid",
    "gclid",
    "gclsrc",
    "igshid",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "msclkid",
    "oly_anon_id",
    "oly_enc_id",
    "ref_src",
    "srsltid",
    "twclid",
    "vero_id",
    "wbraid",
    "yclid",
];

/// The URL to show: http or https, without tracking parameters and text fragments.
pub fn clean_url(text: &str) -> Option<Url> {
    let mut url = Url::parse(text.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return None;
    }
    if !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    if let Some(query) = url.query() {
        let kept: Vec<&str> = query.split('&').filter(|pair| !is_tracking_param(pair)).collect();
        let kept = kept.join("&");
        if kept != query {
            url.set_query(Some(kept.as_str()).filter(|kept| !kept.is_empty()));
        }
    }
    if let Some((before, _)) = url.fragment().and_then(|fragment| fragment.split_once(":~:")) {
        let before = before.to_owned();
        url.set_fragment(Some(before.as_str()).filter(|before| !before.is_empty()));
    }
    Some(url)
}

fn is_tracking_param(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or_default().to_ascii_lowercase();
    pair.is_empty() || name.starts_with("utm_") || TRACKING_PARAMS.contains(&name.as_str())
}

/// Deduplication key of a URL: ignores scheme, `www.`, a trailing slash and the fragment, unless the fragment is a
/// route.
pub fn dedup_key(url: &str) -> String {
    let Ok(url) = Url::parse(url) else { return url.to_owned() };
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let path = url.path().trim_end_matches('/');
    let query =
        url.query().filter(|query| !query.is_empty()).map(|query| format!("?{query}")).unwrap_or_default();
    let route = url.fragment().filter(|fragment| fragment.starts_with(['!', '/']));
    let route = route.map(|route| format!("#{route}")).unwrap_or_default();
    format!("{host}{port}{path}{query}{route}")
}

#[cfg(test)]
mod tests {
    use super::{clean_url, dedup_key};

    #[test]
    fn tracking_is_left_out_and_nothing_else() {
        for (given, shown) in [
            ("https://a.example/x?utm_source=b&id=7&gclid=1", Some("https://a.example/x?id=7")),
            ("https://a.example/x?UTM_Campaign=b", Some("https://a.example/x")),
            ("https://a.example/x?q=a%20b&r=%2F", Some("https://a.example/x?q=a%20b&r=%2F")),
            ("https://a.example/x#part", Some("https://a.example/x#part")),
            ("https://a.example/x#:~:text=hidden", Some("https://a.example/x")),
            ("https://a.example/x#part:~:text=hidden", Some("https://a.example/x#part")),
            ("javascript:alert(1)", None),
            ("file:///etc/passwd", None),
            ("magnet:?xt=urn:btih:1", None),
            ("https://user:word@a.example/", None),
            ("not an address", None),
        ] {
            assert_eq!(clean_url(given).map(String::from).as_deref(), shown, "{given}");
        }
    }

    #[test]
    fn two_addresses_of_one_page_have_one_key() {
        for (one, other, same) in [
            ("http://www.a.example/x/", "https://a.example/x", true),
            ("https://a.example/x#part", "https://a.example/x", true),
            ("https://a.example", "https://a.example/", true),
            ("https://A.EXAMPLE/x", "https://a.example/x", true),
            ("https://a.example:443/x", "https://a.example/x", true),
            ("https://a.example/x?id=1", "https://a.example/x?id=2", false),
            ("https://a.example/x", "https://a.example/X", false),
            ("https://a.example/#/one", "https://a.example/#/two", false),
            ("https://a.example:8443/x", "https://a.example/x", false),
        ] {
            assert_eq!(dedup_key(one) == dedup_key(other), same, "{one} {other}");
        }
    }
}
