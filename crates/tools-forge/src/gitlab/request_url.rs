//! Builds the URL of a request from parts: a value stays one segment, and nothing leaves the API.

use octo_toolkit::ToolError;
use serde_json::{Map, Value};
use url::Url;

/// Maximum nesting of parameter names, as in `not[labels]`.
const MAX_PARAM_DEPTH: usize = 3;
/// How often proxies in front of the instance may decode a text.
const MAX_DECODINGS: usize = 3;

type ParamValues = Map<String, Value>;

/// URL of `path` beneath the root of the API.
pub fn build_url(
    api: &Url,
    path: &str,
    path_params: Option<&ParamValues>,
    params: Option<&ParamValues>,
) -> Result<Url, ToolError> {
    let text = path_below_api(api, path.trim())?;
    if text.contains('#') {
        return Err(ToolError::invalid("The path contains a `#`.")
            .hint("Encode it as %23, or pass it in path_params."));
    }
    let (route, query) = text.split_once('?').unwrap_or((text, ""));
    let segments = segments(route, path_params)?;
    let mut url = api.clone();
    url.path_segments_mut()
        .map_err(|()| ToolError::internal("the root of the API cannot be a base URL"))?
        .pop_if_empty()
        .extend(&segments);
    let mut pairs: Vec<(String, String)> =
        url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    for (name, value) in params.into_iter().flatten() {
        flatten(name.clone(), value, MAX_PARAM_DEPTH, &mut pairs)?;
    }
    if !pairs.is_empty() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
    // Final check: the token must not be sent elsewhere.
    let beneath = url.path().strip_prefix(api.path()).is_some_and(|rest| rest.starts_with('/'));
    if beneath && url.origin() == api.origin() { Ok(url) } else { Err(outside_api_error()) }
}

/// The part after the API's root, which may be absolute as in links to further pages.
fn path_below_api<'a>(api: &Url, text: &'a str) -> Result<&'a str, ToolError> {
    if text.contains('\\') {
        return Err(ToolError::invalid("The path contains a backslash.").hint("Separate segments with /."));
    }
    let is_whole = text.split(['/', '?', '#']).next().is_some_and(|head| head.ends_with(':'));
    let rest = if is_whole {
        let rest =
            text.strip_prefix(api.as_str()).filter(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
        rest.ok_or_else(outside_api_error)?
    } else if text.starts_with("//") {
        return Err(outside_api_error());
    } else {
        let rest = text.strip_prefix('/').unwrap_or(text);
        rest.strip_prefix("api/v4")
            .filter(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
            .unwrap_or(rest)
    };
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    if rest == "api" || rest.starts_with("api/") {
        return Err(ToolError::invalid("Only the REST API, version 4, is supported.")
            .hint("Omit /api/v4, such as projects/1/issues."));
    }
    Ok(rest)
}

fn outside_api_error() -> ToolError {
    ToolError::denied("The path is outside this GitLab instance's API.")
        .hint("Use a path such as projects/1/issues; for another server use http_request.")
}

fn segments(route: &str, given: Option<&ParamValues>) -> Result<Vec<String>, ToolError> {
    let route = route.strip_suffix('/').unwrap_or(route);
    if route.is_empty() {
        return Err(ToolError::invalid("The path is empty.").hint("Use a path such as projects/1/issues."));
    }
    let mut used = Vec::new();
    let mut segments = Vec::new();
    for raw in route.split('/') {
        let segment = match placeholder(raw) {
            Some(name) => {
                used.push(name);
                value_of(name, given)?
            }
            None => percent_decode(raw).ok_or_else(|| {
                ToolError::invalid("The path contains an invalid percent-encoding.")
                    .hint("Encode a percent sign as %25, or pass the value in path_params.")
            })?,
        };
        check(&segment)?;
        segments.push(segment);
    }
    match given.into_iter().flatten().find(|(name, _)| !used.contains(&name.as_str())) {
        Some((name, _)) => {
            Err(ToolError::invalid(format!("The path has no placeholder for `{name}` of path_params."))
                .hint(format!("Add {{{name}}} to the path, or pass it in params.")))
        }
        None => Ok(segments),
    }
}

/// `{id}` and `:id` are placeholders.
fn placeholder(raw: &str) -> Option<&str> {
    let name =
        raw.strip_prefix('{').and_then(|raw| raw.strip_suffix('}')).or_else(|| raw.strip_prefix(':'))?;
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain.then_some(name)
}

fn value_of(name: &str, given: Option<&ParamValues>) -> Result<String, ToolError> {
    match given.and_then(|given| given.get(name)) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(_) => Err(ToolError::invalid(format!("`{name}` of path_params is neither text nor a number."))
            .hint("Use text or a number.")),
        None => Err(ToolError::invalid(format!(
            "The path has a placeholder `{name}`, which is missing in path_params."
        ))
        .hint(format!("Use path_params such as {{\"{name}\": \"group/project\"}}."))),
    }
}

/// Refuses a segment that a server could interpret as another path, however often it decodes it.
fn check(segment: &str) -> Result<(), ToolError> {
    let mut text = segment.to_owned();
    for _ in 0..=MAX_DECODINGS {
        let odd = text
            .split(['/', '\\'])
            .any(|part| matches!(part.split(';').next().unwrap_or_default(), "" | "." | ".."));
        if odd || text.chars().any(char::is_control) {
            return Err(ToolError::invalid(
                "A segment of the path is empty, is `.` or `..`, or contains a control character.",
            )
            .hint("Use projects/group%2Fproject, or {id} with path_params."));
        }
        match percent_decode(&text) {
            Some(next) if next != text => text = next,
            _ => break,
        }
    }
    Ok(())
}

/// Decodes percent-encoding; `None` if it is invalid.
fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (high, low) = (char::from(rest.next()?).to_digit(16)?, char::from(rest.next()?).to_digit(16)?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// Names and values in GitLab's format: `iids[]=1&iids[]=2`, `not[labels]=x`.
fn flatten(
    name: String,
    value: &Value,
    deeper: usize,
    into: &mut Vec<(String, String)>,
) -> Result<(), ToolError> {
    match value {
        Value::Null => {}
        Value::String(text) => into.push((name, text.clone())),
        Value::Number(number) => into.push((name, number.to_string())),
        Value::Bool(truth) => into.push((name, truth.to_string())),
        Value::Array(items) if deeper > 0 => {
            let name = if name.ends_with("[]") { name } else { format!("{name}[]") };
            for item in items {
                flatten(name.clone(), item, deeper - 1, into)?;
            }
        }
        Value::Object(members) if deeper > 0 => {
            for (member, value) in members {
                flatten(format!("{name}[{member}]"), value, deeper - 1, into)?;
            }
        }
        _ => {
            return Err(ToolError::invalid(format!("The parameter `{name}` is nested too deeply."))
                .hint("Use text, numbers, true or false, or arrays and objects of these."));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_toolkit::Kind;
    use proptest::prelude::*;
    use serde_json::json;

    fn api() -> Url {
        "https://git.example/sub/api/v4".parse().unwrap()
    }

    fn url_for(path: &str) -> Result<String, Kind> {
        build_url(&api(), path, None, None).map(|url| url.to_string()).map_err(|error| error.kind)
    }

    #[test]
    fn paths_are_beneath_the_api() {
        for (path, expected) in [
            ("projects", "/projects"),
            ("/projects/1/issues/", "/projects/1/issues"),
            ("api/v4/projects", "/projects"),
            ("/api/v4/projects?page=2", "/projects?page=2"),
            ("projects/group%2Fsub%2fproject", "/projects/group%2Fsub%2Fproject"),
            ("projects/1/repository/files/src%2Flib.rs/raw", "/projects/1/repository/files/src%2Flib.rs/raw"),
            ("projects/1/repository/branches/a%20b%3F%23c", "/projects/1/repository/branches/a%20b%3F%23c"),
            ("projects/1/labels/100%25", "/projects/1/labels/100%25"),
            ("users?search=a b&x=1", "/users?search=a+b&x=1"),
            ("https://git.example/sub/api/v4/projects?id_after=42", "/projects?id_after=42"),
            ("projects/@evil.example", "/projects/@evil.example"),
            ("projects/1/repository/files/..x", "/projects/1/repository/files/..x"),
        ] {
            assert_eq!(url_for(path), Ok(format!("{}{expected}", api())), "{path}");
        }
    }

    #[test]
    fn hostile_paths_are_refused() {
        for (path, kind) in [
            ("", Kind::Invalid),
            ("/", Kind::Invalid),
            ("https://evil.example/api/v4/projects", Kind::Denied),
            ("http://git.example/sub/api/v4/projects", Kind::Denied),
            ("https://git.example/sub/api/v4evil", Kind::Denied),
            ("https://git.example/sub/api/v4@evil.example/x", Kind::Denied),
            ("https://git.example/admin", Kind::Denied),
            ("HTTPS://evil.example", Kind::Denied),
            ("file:///etc/passwd", Kind::Denied),
            ("//evil.example/projects", Kind::Denied),
            ("///evil.example/projects", Kind::Denied),
            ("/\\evil.example/projects", Kind::Invalid),
            ("\\\\evil.example", Kind::Invalid),
            ("..", Kind::Invalid),
            ("../admin", Kind::Invalid),
            ("projects/../../admin", Kind::Invalid),
            ("projects/./1", Kind::Invalid),
            ("projects/%2e%2e/%2e%2e/admin", Kind::Invalid),
            ("projects/..%2f..%2fadmin", Kind::Invalid),
            ("projects/.%2e/x", Kind::Invalid),
            ("projects/%252e%252e/x", Kind::Invalid),
            ("projects/%25252e%25252e%25252fx", Kind::Invalid),
            ("projects/..%5c..%5cx", Kind::Invalid),
            ("projects/..;/x", Kind::Invalid),
            ("projects//1", Kind::Invalid),
            ("projects/a%2F%2Fb", Kind::Invalid),
            ("projects/1#fragment", Kind::Invalid),
            ("projects/1%00", Kind::Invalid),
            ("projects/1%0d%0aHost: evil", Kind::Invalid),
            ("projects/1\r\nHost: evil", Kind::Invalid),
            ("projects/%zz", Kind::Invalid),
            ("projects/%", Kind::Invalid),
            ("projects/%ff", Kind::Invalid),
            ("api/graphql", Kind::Invalid),
            ("/api/v3/projects", Kind::Invalid),
            ("projects/:id", Kind::Invalid),
        ] {
            assert_eq!(url_for(path), Err(kind), "{path}");
        }
    }

    #[test]
    fn a_value_of_the_path_stays_one_segment() {
        let with = |path: &str, values: Value| {
            let url = build_url(&api(), path, values.as_object(), None);
            url.map(|url| url.path().to_owned()).map_err(|error| error.message.into_owned())
        };
        assert_eq!(
            with("projects/{id}/merge_requests/:iid", json!({"id": "group/sub/project", "iid": 7})),
            Ok("/sub/api/v4/projects/group%2Fsub%2Fproject/merge_requests/7".to_owned())
        );
        assert_eq!(
            with("projects/{id}/repository/branches/{branch}", json!({"id": 1, "branch": "50%/a?b#c"})),
            Ok("/sub/api/v4/projects/1/repository/branches/50%25%2Fa%3Fb%23c".to_owned())
        );
        for values in [
            json!({"id": ".."}),
            json!({"id": "../../admin"}),
            json!({"id": "a/../b"}),
            json!({"id": "%2e%2e"}),
            json!({"id": ""}),
            json!({"id": "/etc"}),
            json!({"id": "a\nb"}),
            json!({"id": ["a"]}),
            json!({"other": "a"}),
            json!({"id": "a", "other": "b"}),
        ] {
            assert!(with("projects/{id}", values.clone()).is_err(), "{values}");
        }
    }

    #[test]
    fn parameters_are_written_as_gitlab_reads_them() {
        let params = json!({
            "state": "opened", "per_page": 100, "simple": true, "none": null, "search": "a&b=c d",
            "iids": [1, 2], "not": {"labels": "x"}, "ids[]": [3],
        });
        let url = build_url(&api(), "issues?page=1", None, params.as_object()).unwrap();
        assert_eq!(
            url.query().unwrap(),
            "page=1&state=opened&per_page=100&simple=true&search=a%26b%3Dc+d&iids%5B%5D=1&iids%5B%5D=2\
             &not%5Blabels%5D=x&ids%5B%5D=3"
        );
        let deep = json!({"a": {"b": {"c": {"d": {"e": 1}}}}});
        assert!(build_url(&api(), "issues", None, deep.as_object()).is_err());
    }

    proptest! {
        #[test]
        fn no_text_leads_out_of_the_api(
            path in "[a-z/.%2eEfF5cC:;@?#\\\\{}\\PC]{0,40}",
            value in "[a-z/.%2eEfF5cC:;@?#\\\\\\PC]{0,20}",
        ) {
            let values = json!({"id": value});
            for (path, values) in [(path.as_str(), None), ("projects/{id}/x", values.as_object())] {
                if let Ok(url) = build_url(&api(), path, values, None) {
                    prop_assert!(url.as_str().starts_with("https://git.example/sub/api/v4/"), "{}", url);
                    prop_assert!(!url.path().split('/').any(|part| matches!(part, "." | "..")), "{}", url);
                }
            }
        }
    }
}
