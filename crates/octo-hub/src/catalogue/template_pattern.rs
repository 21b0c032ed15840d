//! Patterns of the URIs that a template stands for.

use regex::Regex;

/// Compiles a URI template: `{x}` matches one segment, `{+x}` and `{/x}` may match several.
pub fn template_pattern(template: &str) -> Option<Regex> {
    let mut pattern = String::from("^");
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (variable, tail) = after.split_once('}')?;
        pattern.push_str(&regex::escape(before));
        pattern.push_str(match variable.chars().next() {
            Some('+' | '/' | '#') => ".*",
            Some('?' | '&') => r"([?&][^#]*)?",
            _ => "[^/?#]+",
        });
        rest = tail;
    }
    pattern.push_str(&regex::escape(rest));
    pattern.push('$');
    Regex::new(&pattern).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_match_their_uris() {
        for (template, uri, fits) in [
            ("test://template/{id}/data", "test://template/12/data", true),
            ("test://template/{id}/data", "test://template/1/2/data", false),
            ("file:///{+path}", "file:///a/b.txt", true),
            ("http://x/find{?q}", "http://x/find?q=1", true),
            ("http://x.y/", "http://xzy/", false),
        ] {
            assert_eq!(template_pattern(template).unwrap().is_match(uri), fits, "{template} {uri}");
        }
    }
}
