//! Redirects: each hop is checked anew, and credentials stay with their origin.

use super::allow_list::AllowList;
use super::{headers, url_check};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use octo_model::{Kind, ToolError};
use url::Url;

/// One request of a redirect chain.
#[derive(Clone)]
pub(super) struct RedirectHop {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
}

impl RedirectHop {
    /// The request that a response redirects to; `None` if it is not a redirect.
    pub(super) fn next(
        &self,
        status: StatusCode,
        answer: &HeaderMap,
        allow: &AllowList,
    ) -> Result<Option<Self>, ToolError> {
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let Some(location) = answer.get(header::LOCATION) else { return Ok(None) };
        let mut url = std::str::from_utf8(location.as_bytes())
            .ok()
            .and_then(|location| self.url.join(location).ok())
            .ok_or_else(|| ToolError::unavailable("A redirect has an invalid target address."))?;
        url_check::check_url(&url, allow).map_err(redirect_denied)?;
        if url.fragment().is_none() {
            url.set_fragment(self.url.fragment());
        }
        let mut next = Self { url, ..self.clone() };
        if becomes_get(status, &self.method) {
            next.method = Method::GET;
            next.body = None;
            headers::drop_body_headers(&mut next.headers);
        }
        // A downgrade from https to http is another origin, too.
        if next.url.origin() != self.url.origin() {
            headers::drop_credentials(&mut next.headers);
        }
        Ok(Some(next))
    }
}

/// As in browsers.
fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status.as_u16() {
        301 | 302 => *method == Method::POST,
        303 => *method != Method::GET && *method != Method::HEAD,
        _ => false,
    }
}

/// The caller did not write this address.
fn redirect_denied(error: ToolError) -> ToolError {
    let message = format!("Redirect refused: {}", error.message);
    ToolError::new(Kind::Denied, message).hint("Use another address; this one redirects to a refused target.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(method: Method, url: &str) -> RedirectHop {
        let headers =
            [("authorization", "secret"), ("content-type", "text/plain"), ("accept", "*/*"), ("cookie", "c")];
        let headers =
            headers.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        RedirectHop {
            method,
            url: url.parse().unwrap(),
            headers: headers.collect(),
            body: Some(Bytes::from_static(b"body")),
        }
    }

    fn next(hop: &RedirectHop, status: u16, location: &str) -> Result<Option<RedirectHop>, ToolError> {
        let answer = [(header::LOCATION, location.parse().unwrap())].into_iter().collect();
        hop.next(status.try_into().unwrap(), &answer, &AllowList::default())
    }

    #[test]
    fn method_and_body_change_as_in_browsers() {
        for (status, method, after, body) in [
            (301, Method::POST, Method::GET, false),
            (302, Method::POST, Method::GET, false),
            (303, Method::POST, Method::GET, false),
            (303, Method::PUT, Method::GET, false),
            (303, Method::HEAD, Method::HEAD, true),
            (301, Method::PUT, Method::PUT, true),
            (302, Method::DELETE, Method::DELETE, true),
            (307, Method::POST, Method::POST, true),
            (308, Method::POST, Method::POST, true),
        ] {
            let next = next(&hop(method.clone(), "https://a.example/"), status, "/x").unwrap().unwrap();
            assert_eq!((next.method, next.body.is_some()), (after, body), "{status} {method}");
            assert_eq!(next.headers.contains_key("content-type"), body, "{status} {method}");
            assert!(next.headers.contains_key("authorization"), "the origin is the same");
        }
        for status in [200, 300, 304, 305, 306] {
            assert!(
                next(&hop(Method::GET, "https://a.example/"), status, "/x").unwrap().is_none(),
                "{status}"
            );
        }
    }

    #[test]
    fn credentials_stay_with_their_origin() {
        for (from, to, kept) in [
            ("https://a.example/", "/b", true),
            ("https://a.example/", "https://a.example:443/b", true),
            ("https://a.example/", "HTTPS://A.EXAMPLE/b", true),
            ("https://a.example/", "http://a.example/", false),
            ("http://a.example/", "https://a.example/", false),
            ("https://a.example/", "https://a.example:8443/", false),
            ("https://a.example/", "https://b.a.example/", false),
            ("https://a.example/", "//b.example/", false),
            ("https://a.example/", "https://a.example./", false),
        ] {
            let next = next(&hop(Method::GET, from), 302, to).unwrap().unwrap();
            for name in ["authorization", "cookie"] {
                assert_eq!(next.headers.contains_key(name), kept, "{name} from {from} to {to}");
            }
            assert!(next.headers.contains_key("accept"));
        }
    }

    #[test]
    fn a_redirect_out_of_the_web_is_refused() {
        for to in [
            "file:///etc/passwd",
            "gopher://a.example/",
            "ftp://a.example/",
            "data:,x",
            "javascript:1",
            "about:blank",
            "http://user:pw@a.example/",
            "http://a.example:22/",
            "ws://a.example/",
        ] {
            let error = next(&hop(Method::GET, "https://a.example/"), 302, to).err().unwrap();
            assert_eq!(error.kind, Kind::Denied, "{to}");
        }
        assert!(next(&hop(Method::GET, "https://a.example/"), 302, "http://[").is_err());
    }

    #[test]
    fn the_fragment_is_inherited() {
        let from = hop(Method::GET, "https://a.example/#part");
        assert_eq!(next(&from, 302, "/b").unwrap().unwrap().url.as_str(), "https://a.example/b#part");
        assert_eq!(next(&from, 302, "/b#other").unwrap().unwrap().url.as_str(), "https://a.example/b#other");
    }
}
