//! URL and headers of a bridge.

use crate::app_error::AppError;
use crate::settings::Environment;
use http::{HeaderName, HeaderValue};
use std::collections::BTreeMap;
use url::Url;

/// Prefix of a header value that names an environment variable.
const ENV_PREFIX: &str = "env:";

/// Returns the URL of a remote. A URL without a path is that of a hub: adds `/mcp`, and the profile if there is one.
pub fn remote_url(text: &str, profile: Option<&str>) -> Result<String, AppError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let mut url = url.ok_or_else(|| {
        AppError::invalid(format!("`{text}` is not a URL. Write it like https://hub.example.com."))
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AppError::invalid(
            "User names and passwords in a URL are visible in process lists. Use --token-env or --header.",
        ));
    }
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/').to_owned();
    match (path.as_str(), profile) {
        ("", None) => url.set_path("/mcp"),
        ("" | "/mcp", Some(profile)) if octo_model::is_valid_name(profile) => {
            url.set_path(&format!("/mcp/{profile}"));
        }
        ("" | "/mcp", Some(profile)) => {
            return Err(AppError::invalid(format!(
                "`{profile}` is not a profile name. Use letters, digits, `_` and `-`."
            )));
        }
        (_, Some(_)) => {
            return Err(AppError::invalid(
                "--profile cannot be combined with a URL that has a path. Remove one of them.",
            ));
        }
        (_, None) => {}
    }
    Ok(url.into())
}

/// Parses the headers of every request. Values may come from environment variables.
pub fn parse_headers(
    given: &[String],
    token: Option<&str>,
    world: &Environment,
) -> Result<BTreeMap<String, String>, AppError> {
    let mut headers = BTreeMap::new();
    for header in given {
        let (name, value) = header.split_once(':').ok_or_else(|| {
            AppError::invalid(
                "--header: write the name, a colon and the value, such as 'X-Api-Key: env:MY_KEY'.",
            )
        })?;
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        let value = match value.strip_prefix(ENV_PREFIX) {
            Some(variable) => env_value(variable, world)?,
            None => value.to_owned(),
        };
        add_header(&mut headers, name, value)?;
    }
    if let Some(variable) = token {
        add_header(
            &mut headers,
            "authorization".to_owned(),
            format!("Bearer {}", env_value(variable, world)?),
        )?;
    }
    Ok(headers)
}

fn env_value(name: &str, world: &Environment) -> Result<String, AppError> {
    let value = world.variable(name).map(|value| value.trim().to_owned());
    value.ok_or_else(|| {
        AppError::invalid(format!("The environment variable {name} is not set or empty. Set it first."))
    })
}

/// Adds a header. Errors do not contain its value.
fn add_header(headers: &mut BTreeMap<String, String>, name: String, value: String) -> Result<(), AppError> {
    if HeaderName::try_from(name.as_str()).is_err() || HeaderValue::try_from(value.as_str()).is_err() {
        return Err(AppError::invalid(format!(
            "The header `{name}` cannot be sent: its name or value has characters that are not allowed."
        )));
    }
    match headers.insert(name.clone(), value) {
        None => Ok(()),
        Some(_) => Err(AppError::invalid(format!("The header `{name}` is given twice. Remove one of them."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_made_whole() {
        for (text, profile, whole) in [
            ("https://hub.example.com", None, Some("https://hub.example.com/mcp")),
            ("http://localhost:7000/", None, Some("http://localhost:7000/mcp")),
            ("http://localhost:7000", Some("work"), Some("http://localhost:7000/mcp/work")),
            ("http://localhost:7000/mcp", Some("work"), Some("http://localhost:7000/mcp/work")),
            ("http://localhost:7000/mcp/work", None, Some("http://localhost:7000/mcp/work")),
            ("https://x.example/v1/", None, Some("https://x.example/v1/")),
            ("https://x.example/v1", Some("work"), None),
            ("https://x.example", Some("../admin"), None),
            ("hub.example.com:7000", None, None),
            ("ftp://x.example", None, None),
            ("https://me:secret@x.example", None, None),
            ("", None, None),
        ] {
            assert_eq!(remote_url(text, profile).ok().as_deref(), whole, "{text} {profile:?}");
        }
    }

    #[test]
    fn headers_come_from_words_and_variables() {
        let variables = [("KEY".to_owned(), "k3y\n".to_owned()), ("BAD".to_owned(), "a\u{7}b".to_owned())];
        let world = Environment { variables: variables.into(), ..Environment::default() };
        let read = |given: &[&str], token| {
            let given: Vec<String> = given.iter().map(ToString::to_string).collect();
            parse_headers(&given, token, &world)
        };
        let both = read(&["X-A: b: c", "X-Key:env:KEY"], Some("KEY")).unwrap();
        let both: Vec<(&str, &str)> =
            both.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(both, [("authorization", "Bearer k3y"), ("x-a", "b: c"), ("x-key", "k3y")]);
        for (given, token, says) in [
            (&["no colon"][..], None, "a colon"),
            (&["a b: c"], None, "cannot be sent"),
            (&["x: env:BAD"], None, "cannot be sent"),
            (&["x: env:NONE"], None, "variable NONE is not set"),
            (&["Authorization: x"], Some("KEY"), "given twice"),
            (&[], Some("NONE"), "variable NONE is not set"),
        ] {
            let refused = format!("{:?}", read(given, token).unwrap_err());
            assert!(refused.contains(says) && !refused.contains("k3y"), "{given:?}: {refused}");
        }
    }
}
