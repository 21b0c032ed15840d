//! Redirects: followed within the configured host, never to another one.

use http::header::LOCATION;
use http::{Response, StatusCode, Uri};

/// Returns the new URL if method and body may be sent there again. Only the path is taken from it: servers behind a
/// proxy often name the wrong scheme, and credentials must not go elsewhere.
pub(super) fn redirect_target<B>(from: &Uri, response: &Response<B>) -> Option<Uri> {
    if !matches!(response.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
        return None;
    }
    let location: Uri = response.headers().get(LOCATION)?.to_str().ok()?.parse().ok()?;
    if location.host().is_some_and(|host| Some(host) != from.host()) {
        return None;
    }
    let mut parts = from.clone().into_parts();
    parts.path_and_query = location.into_parts().path_and_query;
    let target = Uri::from_parts(parts).ok()?;
    (target != *from).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_may_change() {
        let from: Uri = "https://a.example:8443/mcp".parse().unwrap();
        let to = |code: u16, location: &str| {
            let response = Response::builder().status(code).header(LOCATION, location).body(()).unwrap();
            redirect_target(&from, &response).map(|uri| uri.to_string())
        };
        assert_eq!(to(307, "/mcp/").as_deref(), Some("https://a.example:8443/mcp/"));
        assert_eq!(to(308, "http://a.example/x?y=1").as_deref(), Some("https://a.example:8443/x?y=1"));
        assert_eq!(to(307, "https://evil.example/mcp/"), None);
        assert_eq!(to(307, "/mcp"), None);
        assert_eq!(to(302, "/mcp/"), None);
    }
}
