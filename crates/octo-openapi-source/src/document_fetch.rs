//! Document at a URL, fetched with conditional requests.

use crate::document_spec::DocumentSpec;
use crate::loaded_api::parse_http_url;
use http::header::{ACCEPT, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use octo_grants::Net;
use octo_grants::net::{NetRequest, NetResponse};
use octo_model::{Kind, ToolError};
use octo_openapi::MAX_DOCUMENT_BYTES;
use std::time::Duration;
use url::Url;

const FETCH_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_REDIRECTS: usize = 5;
const ACCEPT_DOCUMENT: HeaderValue =
    HeaderValue::from_static("application/json, application/yaml;q=0.9, */*;q=0.5");

/// A fetched document, with its final URL.
pub(crate) struct FetchedDocument {
    pub(crate) text: String,
    pub(crate) url: Url,
}

/// URL of the document, and the validators of the known version.
pub(crate) struct DocumentLocation {
    url: Url,
    /// Egress to the configured URL; redirects elsewhere may only lead to public addresses.
    configured_net: Net,
    public_net: Net,
    /// Sent if the settings place the API at the same origin.
    credential_headers: HeaderMap,
    query: Option<String>,
    validators: HeaderMap,
}

impl DocumentLocation {
    pub(crate) fn new(spec: &DocumentSpec, text: &str) -> Result<Self, ToolError> {
        let url = parse_http_url(text)?;
        let api = spec.url.as_deref().map(parse_http_url).transpose()?;
        let is_home = api.is_some_and(|api| api.origin() == url.origin());
        let (proof, query) = if is_home { credentials_for(spec) } else { (HeaderMap::new(), None) };
        let named = spec.net.for_configured_host(url.as_str())?;
        Ok(Self {
            url,
            configured_net: named,
            public_net: spec.net.clone(),
            credential_headers: proof,
            query,
            validators: HeaderMap::new(),
        })
    }

    /// Fetches the document; `None` if it is unchanged.
    pub(crate) async fn fetch(&mut self) -> Result<Option<FetchedDocument>, ToolError> {
        let mut url = self.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.get(&url).await?;
            if let Some(next) = redirect_target(&answer, &url) {
                url = next;
                continue;
            }
            if answer.status == StatusCode::NOT_MODIFIED {
                return Ok(None);
            }
            return self.accept(answer, url).map(Some);
        }
        Err(ToolError::unavailable("too many redirects of the document's URL"))
    }

    async fn get(&self, url: &Url) -> Result<NetResponse, ToolError> {
        let is_own = url.origin() == self.url.origin();
        let mut ask = NetRequest {
            timeout: FETCH_TIMEOUT,
            max_bytes: MAX_DOCUMENT_BYTES,
            max_redirects: 0,
            ..NetRequest::get(url.clone())
        };
        ask.headers.insert(ACCEPT, ACCEPT_DOCUMENT);
        ask.headers.extend(self.validators.clone());
        if is_own {
            ask.headers.extend(self.credential_headers.clone());
            if let Some(query) = &self.query {
                let whole = ask.url.query().map_or_else(|| query.clone(), |own| format!("{own}&{query}"));
                ask.url.set_query(Some(&whole));
            }
        }
        let net = if is_own { &self.configured_net } else { &self.public_net };
        net.send(ask).await
    }

    fn accept(&mut self, answer: NetResponse, url: Url) -> Result<FetchedDocument, ToolError> {
        if !answer.status.is_success() {
            let status = answer.status.as_u16();
            return Err(ToolError::unavailable(format!("the document's URL returned status {status}")));
        }
        if answer.truncated {
            return Err(ToolError::new(Kind::TooLarge, "the document is larger than 32 MB"));
        }
        let marks = [(ETAG, IF_NONE_MATCH), (LAST_MODIFIED, IF_MODIFIED_SINCE)];
        let known =
            marks.into_iter().filter_map(|(said, asked)| Some((asked, answer.headers.get(said)?.clone())));
        self.validators = known.collect();
        let text = String::from_utf8(answer.body.to_vec())
            .map_err(|_| ToolError::invalid("the document is not UTF-8"))?;
        Ok(FetchedDocument { text, url })
    }
}

fn credentials_for(spec: &DocumentSpec) -> (HeaderMap, Option<String>) {
    let sendable = |(name, value): (&String, &String)| {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name.as_str()).ok()?, value))
    };
    let query = spec.query_key.as_ref().map(|(name, secret)| {
        url::form_urlencoded::Serializer::new(String::new()).append_pair(name, secret.expose()).finish()
    });
    (spec.headers.iter().filter_map(sendable).collect(), query)
}

fn redirect_target(answer: &NetResponse, from: &Url) -> Option<Url> {
    let location = answer.status.is_redirection().then(|| answer.headers.get(LOCATION))??;
    from.join(location.to_str().ok()?).ok()
}
