//! URLs that a tab may have.

use octo_toolkit::ToolError;

/// Forbidden schemes: local files and the browser's own pages.
const FORBIDDEN_SCHEMES: [&str; 12] = [
    "file:",
    "filesystem:",
    "view-source:",
    "chrome:",
    "chrome-untrusted:",
    "chrome-extension:",
    "devtools:",
    "ftp:",
    "javascript:",
    "isolated-app:",
    "externalfile:",
    "content:",
];

/// Whether a tab at this URL must be closed.
pub(super) fn is_forbidden(url: &str) -> bool {
    let url = url.trim_start();
    FORBIDDEN_SCHEMES
        .iter()
        .any(|scheme| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}

/// Whether a URL may be opened; checked before anything else.
pub(super) fn check_navigable(url: &str) -> Result<(), ToolError> {
    let scheme = url.trim().split(':').next().unwrap_or_default().to_ascii_lowercase();
    match scheme.as_str() {
        "http" | "https" => Ok(()),
        _ => Err(ToolError::denied("The browser opens only http and https URLs.")
            .hint("Use a URL that starts with https:// or http://; read files with the fs tools.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_web_is_allowed() {
        let rows = [
            ("https://example.com/", true, false),
            ("HTTP://example.com/", true, false),
            ("about:blank", false, false),
            ("blob:https://a/1", false, false),
            ("data:text/html,x", false, false),
            ("file:///etc/passwd", false, true),
            ("FILE:///etc/passwd", false, true),
            (" file:///etc/passwd", false, true),
            ("view-source:http://a/", false, true),
            ("chrome://version", false, true),
            ("chrome-error://chromewebdata/", false, false),
            ("devtools://devtools/x", false, true),
            ("javascript:alert(1)", false, true),
            ("ftp://a/", false, true),
            ("\\\\host\\share", false, false),
            ("example.com", false, false),
            ("", false, false),
        ];
        for (url, by_address, closed) in rows {
            assert_eq!(check_navigable(url).is_ok(), by_address, "{url}");
            assert_eq!(is_forbidden(url), closed, "{url}");
        }
    }
}
