//! Base URL of an API: from its document, from the document's own URL, or overridden.

use crate::Document;
use crate::document::{Version, text_of};
use crate::operation::ApiOperation;
use crate::value_ext::ValueExt;
use octo_toolkit::ToolError;
use serde_json::Value;
use std::collections::BTreeMap;
use url::Url;

/// What is known besides the document.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// Replaces all servers of the document.
    pub base_url_override: Option<Url>,
    /// URL of the document; base of relative servers.
    pub document_url: Option<Url>,
    /// Values of server variables.
    pub variables: BTreeMap<String, String>,
}

impl Document {
    /// Base URL of an operation.
    pub fn base(&self, operation: Option<&ApiOperation>, reach: &ServerOptions) -> Result<Url, ToolError> {
        match &reach.base_url_override {
            Some(instead) => Ok(instead.clone()),
            None => self.document_base_url(operation, reach),
        }
    }

    /// The same, ignoring the override.
    pub fn document_base_url(
        &self,
        operation: Option<&ApiOperation>,
        reach: &ServerOptions,
    ) -> Result<Url, ToolError> {
        let source = reach.document_url.as_ref();
        if self.version == Version::V2 {
            return self.old_base(source);
        }
        let servers =
            operation.map(|operation| operation.servers.clone()).filter(|servers| !servers.is_empty());
        let servers =
            servers.or_else(|| self.value_at(&["servers"])?.as_array().cloned()).unwrap_or_default();
        let text = match servers.first() {
            Some(server) => expand_variables(server, &reach.variables)?,
            None => "/".to_owned(),
        };
        address(&text, source)
    }

    fn old_base(&self, source: Option<&Url>) -> Result<Url, ToolError> {
        let text = |name: &str| self.value_at(&[name]).map(|value| text_of(&value)).unwrap_or_default();
        let path = match text("basePath") {
            path if path.is_empty() => "/".to_owned(),
            path => path,
        };
        let host = text("host");
        if host.is_empty() {
            return address(&path, source);
        }
        let schemes = self.value_at(&["schemes"]).unwrap_or_default();
        let schemes: Vec<&str> = schemes.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let scheme = match source.map(Url::scheme) {
            _ if schemes.contains(&"https") => "https",
            _ if schemes.contains(&"http") => "http",
            Some(scheme) => scheme,
            None => "https",
        };
        address(&format!("{scheme}://{host}/{}", path.trim_start_matches('/')), source)
    }
}

/// Server URL with its variables expanded, each checked against its enum if it has one.
fn expand_variables(server: &Value, given: &BTreeMap<String, String>) -> Result<String, ToolError> {
    let mut text = text_of(server.member("url"));
    for (name, variable) in server.member("variables").as_object().into_iter().flatten() {
        let allowed = variable.member("enum").as_array();
        let value = given.get(name).cloned().unwrap_or_else(|| text_of(variable.member("default")));
        if allowed.is_some_and(|allowed| !allowed.iter().any(|one| text_of(one) == value)) {
            let allowed: Vec<String> = allowed.into_iter().flatten().map(text_of).collect();
            return Err(ToolError::invalid(format!("The server variable `{name}` cannot be `{value}`."))
                .hint(format!("Use one of {}.", allowed.join(", "))));
        }
        if !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte)) {
            return Err(ToolError::invalid(format!("The server variable `{name}` has invalid characters."))
                .hint("Use letters, digits, dots, hyphens, colons and slashes."));
        }
        text = text.replace(&format!("{{{name}}}"), &value);
    }
    match text.contains('{') {
        true => Err(ToolError::invalid(format!("The server `{text}` has undeclared variables."))
            .hint("Set base_url_override.")),
        false => Ok(text),
    }
}

fn address(text: &str, source: Option<&Url>) -> Result<Url, ToolError> {
    let parsed = match source {
        Some(source) => source.join(text).ok(),
        None => Url::parse(text).ok(),
    };
    let Some(mut url) = parsed.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    else {
        let text: String = text.chars().take(120).collect();
        return Err(ToolError::invalid(format!("The document's server `{text}` is not an absolute URL."))
            .hint("Load it from its URL, or set base_url_override, such as https://api.example.com/v1."));
    };
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn base(document: Value, source: Option<&str>, variables: &[(&str, &str)]) -> Result<String, ToolError> {
        let document = Document::parse(document.to_string()).unwrap();
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let reach = ServerOptions {
            base_url_override: None,
            document_url: source.map(|text| text.parse().unwrap()),
            variables,
        };
        document.base(None, &reach).map(|url| url.to_string())
    }

    #[test]
    fn servers_of_every_version() {
        let three = |servers: Value| json!({"openapi": "3.0.0", "paths": {}, "servers": servers});
        let variables = json!([{"url": "https://{region}.x.example:{port}/v1", "variables": {
            "region": {"default": "eu", "enum": ["eu", "us"]}, "port": {"default": "443"}}}]);
        let here = Some("http://docs.example/specs/api.json");
        for (document, source, given, expected) in [
            (three(json!([{"url": "https://a.example/v1"}])), None, &[][..], "https://a.example/v1"),
            (three(variables.clone()), None, &[], "https://eu.x.example/v1"),
            (
                three(variables.clone()),
                None,
                &[("region", "us"), ("port", "81")],
                "https://us.x.example:81/v1",
            ),
            (three(json!([{"url": "/v2"}])), here, &[], "http://docs.example/v2"),
            (three(json!([{"url": "v2"}])), here, &[], "http://docs.example/specs/v2"),
            (three(json!([])), here, &[], "http://docs.example/"),
            (
                json!({"swagger": "2.0", "host": "b.example", "basePath": "/x", "schemes": ["http", "https"]}),
                None,
                &[],
                "https://b.example/x",
            ),
            (json!({"swagger": "2.0", "host": "b.example:81"}), here, &[], "http://b.example:81/"),
            (json!({"swagger": "2.0", "basePath": "/x"}), here, &[], "http://docs.example/x"),
        ] {
            assert_eq!(base(document, source, given).unwrap(), expected);
        }
        assert!(
            base(three(json!([{"url": "/v2"}])), None, &[])
                .unwrap_err()
                .hint
                .unwrap()
                .contains("base_url_override")
        );
        assert!(base(three(json!([{"url": "file:///etc/passwd"}])), None, &[]).is_err());
        assert!(
            base(three(variables.clone()), None, &[("region", "evil")])
                .unwrap_err()
                .text()
                .contains("eu, us")
        );
        assert!(base(three(variables), None, &[("port", "1@evil.example")]).is_err());
    }
}
