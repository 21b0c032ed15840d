//! Tools that send an HTTP request. The URL is built from parts: a value never becomes another segment, key
//! or host.

use super::parameters::{Parameters, Values, Variables};
use super::template_text::TemplateText;
use super::tool_manifest::{self, Type};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use octo_grants::net::{NetRequest, NetResponse};
use octo_grants::{Capabilities, Net};
use octo_model::{Kind, ToolError};
use serde_json::{Map, Value};
use std::time::Duration;
use url::Url;

const MAX_RESPONSE_BYTES: usize = 4 << 20;
const MAX_REDIRECTS: usize = 5;

pub struct Request {
    method: Method,
    base: Url,
    path: Vec<TemplateText>,
    query: Vec<(String, TemplateText)>,
    headers: Vec<(HeaderName, TemplateText)>,
    json: Option<Body>,
}

/// JSON template. Its shape never changes, except that members of absent parameters are omitted.
enum Body {
    Text(TemplateText),
    List(Vec<Body>),
    Object(Vec<(String, Body)>),
    Other(Value),
}

impl Request {
    pub fn new(written: tool_manifest::Request, parameters: &Parameters) -> Result<Self, String> {
        let method = match written.method.as_str() {
            "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" => written.method.parse::<Method>(),
            other => {
                return Err(format!("unknown method `{other}`; use GET, POST, PUT, PATCH, DELETE or HEAD"));
            }
        };
        let method = method.map_err(|error| error.to_string())?;
        if written.json.is_some() && (method == Method::GET || method == Method::HEAD) {
            return Err(format!("a {method} request has no body; remove `json` or change `method`"));
        }
        if parameters.names().any(|name| parameters.get(name).is_some_and(|one| one.kind == Type::Path)) {
            return Err("parameters of type `path` are not supported in a request".to_owned());
        }
        let path: Vec<TemplateText> =
            written.path.iter().map(|segment| TemplateText::parse(&segment.0)).collect::<Result<_, _>>()?;
        let loose = path
            .iter()
            .flat_map(TemplateText::parameters)
            .find(|name| parameters.get(name).is_some_and(|one| !one.required && one.default.is_none()));
        if let Some(loose) = loose {
            return Err(format!("`{loose}` is part of the path, so it must be required or have a default"));
        }
        let query: Vec<(String, TemplateText)> = written
            .query
            .0
            .into_iter()
            .map(|(name, value)| Ok((name, TemplateText::parse(&value.0)?)))
            .collect::<Result<_, String>>()?;
        if path.iter().chain(query.iter().map(|(_, text)| text)).any(|text| text.variables().next().is_some())
        {
            return Err("variables go into `headers`, because URLs are logged".to_owned());
        }
        let headers = written.headers.0.into_iter().map(|(name, value)| parse_header(&name, &value.0));
        Ok(Self {
            method,
            base: parse_base(&written.base)?,
            path,
            query,
            headers: headers.collect::<Result<_, String>>()?,
            json: written.json.map(parse_body).transpose()?,
        })
    }

    /// All template texts.
    pub fn texts(&self) -> Vec<&TemplateText> {
        let mut all: Vec<&TemplateText> = self.path.iter().collect();
        all.extend(self.query.iter().map(|(_, text)| text));
        all.extend(self.headers.iter().map(|(_, text)| text));
        if let Some(body) = &self.json {
            body.texts(&mut all);
        }
        all
    }

    fn build(
        &self,
        values: &Values<'_>,
        variables: &Variables,
        timeout: Duration,
    ) -> Result<NetRequest, ToolError> {
        let mut ask = NetRequest::get(self.url(values)?);
        ask.method = self.method.clone();
        ask.headers = self.build_headers(values, variables)?;
        if let Some(body) = self.json.as_ref().and_then(|body| body.fill(values).transpose()).transpose()? {
            ask.headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
            ask.body = Some(body.to_string().into());
        }
        ask.timeout = timeout;
        ask.max_bytes = MAX_RESPONSE_BYTES;
        // Headers set by the operator are only sent to the configured address.
        let plain = self.method == Method::GET && variables.is_empty();
        ask.max_redirects = if plain { MAX_REDIRECTS } else { 0 };
        Ok(ask)
    }

    fn url(&self, values: &Values<'_>) -> Result<Url, ToolError> {
        let mut url = self.base.clone();
        {
            let mut segments = url.path_segments_mut().map_err(|()| ToolError::internal("no path"))?;
            segments.pop_if_empty();
            for text in &self.path {
                if let Some(segment) = values.fill(text, &Variables::new())? {
                    segments.push(&check_segment(text, segment)?);
                }
            }
        }
        for (name, text) in &self.query {
            match text.single_parameter().and_then(|name| values.get(name)) {
                Some(Value::Array(items)) => {
                    let items = items.iter().filter_map(Value::as_str);
                    url.query_pairs_mut().extend_pairs(items.map(|item| (name, item)));
                }
                _ => {
                    if let Some(value) = values.fill(text, &Variables::new())? {
                        url.query_pairs_mut().append_pair(name, &value);
                    }
                }
            }
        }
        Ok(url)
    }

    fn build_headers(&self, values: &Values<'_>, variables: &Variables) -> Result<HeaderMap, ToolError> {
        let mut headers = HeaderMap::new();
        for (name, text) in &self.headers {
            let Some(value) = values.fill(text, variables)? else { continue };
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                ToolError::invalid(format!("The value of the header {name} is invalid."))
                    .hint("Pass a single line without control characters.")
            })?;
            value.set_sensitive(text.variables().next().is_some());
            headers.insert(name.clone(), value);
        }
        Ok(headers)
    }

    pub async fn run(
        &self,
        values: &Values<'_>,
        variables: &Variables,
        timeout: Duration,
        doors: &Capabilities,
    ) -> Result<String, ToolError> {
        let net: Net = doors.open()?;
        let mut ask = self.build(values, variables, timeout)?;
        ask.url = net.url(ask.url.as_str())?;
        let answer = net.send(ask).await?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        if !answer.status.is_success() {
            return Err(response_error(&answer, &text));
        }
        if answer.truncated {
            return Err(ToolError::new(
                Kind::TooLarge,
                format!("The response has more than {MAX_RESPONSE_BYTES} bytes."),
            )
            .hint("Ask for less at once."));
        }
        Ok(text)
    }
}

fn parse_base(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("invalid URL in `base`: {error}"))?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
        && !text.contains("{{");
    if plain {
        Ok(url)
    } else {
        Err("`base` may have a scheme, host and path only; values go into `path`, `query`, `headers` and `json`"
            .to_owned())
    }
}

fn parse_header(name: &str, value: &str) -> Result<(HeaderName, TemplateText), String> {
    let known: HeaderName = name.parse().map_err(|_| format!("invalid header name `{name}`"))?;
    if ["host", "content-length", "transfer-encoding", "connection"].contains(&known.as_str()) {
        return Err(format!("the header `{name}` cannot be set"));
    }
    Ok((known, TemplateText::parse(value)?))
}

/// A value stays one segment: slashes are encoded, and dot segments are refused.
fn check_segment(text: &TemplateText, segment: String) -> Result<String, ToolError> {
    let name = text.parameters().next().unwrap_or_default();
    if segment.is_empty() || segment == "." || segment == ".." {
        return Err(ToolError::invalid(format!("The parameter `{name}` cannot be `{segment}` in a URL."))
            .hint("Pass a single name or number."));
    }
    Ok(segment)
}

fn parse_body(value: Value) -> Result<Body, String> {
    Ok(match value {
        Value::String(text) => {
            let text = TemplateText::parse(&text)?;
            if text.variables().next().is_some() {
                return Err("variables go into `headers`".to_owned());
            }
            Body::Text(text)
        }
        Value::Array(items) => Body::List(items.into_iter().map(parse_body).collect::<Result<_, _>>()?),
        Value::Object(members) => {
            let members = members.into_iter().map(|(key, value)| Ok((key, parse_body(value)?)));
            Body::Object(members.collect::<Result<_, String>>()?)
        }
        other => Body::Other(other),
    })
}

impl Body {
    fn texts<'a>(&'a self, all: &mut Vec<&'a TemplateText>) {
        match self {
            Self::Text(text) => all.push(text),
            Self::List(items) => items.iter().for_each(|item| item.texts(all)),
            Self::Object(members) => members.iter().for_each(|(_, member)| member.texts(all)),
            Self::Other(_) => {}
        }
    }

    /// A parameter on its own keeps its type; an absent one removes its member.
    fn fill(&self, values: &Values<'_>) -> Result<Option<Value>, ToolError> {
        Ok(match self {
            Self::Text(text) => match text.single_parameter() {
                Some(name) => values.get(name).cloned(),
                None => values.fill(text, &Variables::new())?.map(Value::String),
            },
            Self::List(items) => {
                let filled = items.iter().filter_map(|item| item.fill(values).transpose());
                Some(Value::Array(filled.collect::<Result<_, _>>()?))
            }
            Self::Object(members) => {
                let mut filled = Map::new();
                for (key, member) in members {
                    if let Some(value) = member.fill(values)? {
                        filled.insert(key.clone(), value);
                    }
                }
                Some(Value::Object(filled))
            }
            Self::Other(value) => Some(value.clone()),
        })
    }
}

/// Error with the message of the service.
fn response_error(answer: &NetResponse, text: &str) -> ToolError {
    let words: String = text.trim().chars().filter(|c| !c.is_control() || *c == '\n').take(1_000).collect();
    let message = format!("The service returned {}. {words}", answer.status.as_u16());
    let message = message.trim_end().to_owned();
    match answer.status {
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            ToolError::not_found(message).hint("Check the names and ids in the parameters.")
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            ToolError::denied(message).hint("Ask the operator to check the tool's credentials.")
        }
        StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => {
            ToolError::new(Kind::Conflict, message).hint("Check the current state first.")
        }
        StatusCode::TOO_MANY_REQUESTS => answer.rate_limited(message, Duration::from_secs(10)),
        StatusCode::SERVICE_UNAVAILABLE => ToolError::unavailable(message)
            .hint("Try again later.")
            .retry_after(answer.retry_after().unwrap_or(Duration::from_secs(10))),
        status if status.is_server_error() => ToolError::unavailable(message).hint("Try again later."),
        status if status.is_redirection() => ToolError::unavailable(message)
            .hint("It redirects elsewhere; ask the operator to correct the tool's `base`."),
        _ => ToolError::invalid(message).hint("Change the parameters according to the response."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Json;
    use serde_json::json;

    const TOOL: &str = r#"
parameters:
  owner: {description: x, required: true}
  number: {type: integer, description: x, default: 1}
  label: {type: array, description: x}
  note: {description: x, multiline: true}
  draft: {type: boolean, description: x}
request:
  method: POST
  base: https://api.example.com/v1/
  path: [repos, "{{owner}}", "n{{number}}"]
  query: {label: "{{label}}", q: "is:{{note}}", fixed: a b}
  headers: {X-Owner: "{{owner}}", Authorization: "Bearer {{env.TOKEN}}"}
  json: {title: "by {{owner}}", draft: "{{draft}}", labels: "{{label}}", deep: [{note: "{{note}}"}, 3]}
"#;

    fn built_request(yaml: &str, arguments: &Value) -> Result<(String, HeaderMap, Value), String> {
        #[derive(serde::Deserialize)]
        struct Both {
            parameters: crate::yaml_files::OrderedMap<tool_manifest::Parameter>,
            request: tool_manifest::Request,
        }
        let both: Both = serde_saphyr::from_str(yaml).unwrap();
        let parameters = Parameters::new(both.parameters)?;
        let request = Request::new(both.request, &parameters)?;
        let json = Json::from(arguments.clone());
        let values = parameters.values(Some(&json)).map_err(|error| error.text())?;
        let variables = Variables::from([("TOKEN".to_owned(), "s3cret-token".to_owned())]);
        let ask = request.build(&values, &variables, Duration::from_secs(1)).map_err(|error| error.text())?;
        let body = ask.body.map_or(Value::Null, |body| serde_json::from_slice(&body).unwrap());
        Ok((ask.url.to_string(), ask.headers, body))
    }

    #[test]
    fn requests_are_built_by_parts() {
        let base = "https://api.example.com/v1/repos";
        for (arguments, url, body) in [
            (
                json!({"owner": "a"}),
                format!("{base}/a/n1?fixed=a+b"),
                json!({"title": "by a", "deep": [{}, 3]}),
            ),
            (
                json!({"owner": "../admin", "number": 2, "draft": true}),
                format!("{base}/..%2Fadmin/n2?fixed=a+b"),
                json!({"title": "by ../admin", "draft": true, "deep": [{}, 3]}),
            ),
            (
                json!({"owner": "a?x=1#y", "label": ["p&q=1", "r"], "note": "l\n\"m\""}),
                format!("{base}/a%3Fx=1%23y/n1?label=p%26q%3D1&label=r&q=is%3Al%0A%22m%22&fixed=a+b"),
                json!({"title": "by a?x=1#y", "labels": ["p&q=1", "r"], "deep": [{"note": "l\n\"m\""}, 3]}),
            ),
            (
                json!({"owner": "%2e%2e"}),
                format!("{base}/%252e%252e/n1?fixed=a+b"),
                json!({"title": "by %2e%2e", "deep": [{}, 3]}),
            ),
        ] {
            let (found, headers, sent) = built_request(TOOL, &arguments).unwrap();
            assert_eq!((found, sent), (url, body), "{arguments}");
            assert_eq!(headers["authorization"], "Bearer s3cret-token");
            assert!(headers["authorization"].is_sensitive());
        }
    }

    #[test]
    fn values_that_lead_elsewhere_are_refused() {
        for owner in [".", "..", "", "a\nb", "a\r\nX-Evil: 1", "a\u{0}"] {
            assert!(built_request(TOOL, &json!({"owner": owner})).is_err(), "{owner:?}");
        }
        let (url, ..) = built_request(TOOL, &json!({"owner": "@evil.example"})).unwrap();
        assert!(url.starts_with("https://api.example.com/"), "{url}");
    }

    #[test]
    fn requests_that_cannot_be_meant_are_refused_when_read() {
        for (request, why) in [
            ("base: 'https://{{host}}/'", "`base`"),
            ("base: 'https://user:word@example.com/'", "`base`"),
            ("base: 'file:///etc/passwd'", "`base`"),
            ("base: 'https://example.com/?a=1'", "`base`"),
            ("base: 'https://example.com', method: CONNECT", "unknown method"),
            ("base: 'https://example.com', json: {a: 1}", "no body"),
            ("base: 'https://example.com', headers: {Host: x}", "cannot be set"),
            ("base: 'https://example.com', headers: {'a b': x}", "invalid header name"),
            ("base: 'https://example.com', query: {k: '{{env.KEY}}'}", "variables go into"),
            ("base: 'https://example.com', path: ['{{env.KEY}}']", "variables go into"),
            ("base: 'https://example.com', path: ['{{host}}']", "required or have a default"),
        ] {
            let yaml = format!("parameters: {{host: {{description: x}}}}\nrequest: {{{request}}}");
            let error = built_request(&yaml, &json!({})).unwrap_err();
            assert!(error.contains(why), "{request}: {error}");
        }
    }
}
