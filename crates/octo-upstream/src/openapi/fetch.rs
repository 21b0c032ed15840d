//! A document at an address, asked for again without being sent again when it is the same.

use super::DocumentSpec;
use super::loaded::address;
use http::header::{ACCEPT, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use octo_grants::Net;
use octo_grants::net::{Answer, Ask};
use octo_model::{Kind, ToolError};
use octo_openapi::LARGEST;
use std::time::Duration;
use url::Url;

const PATIENCE: Duration = Duration::from_secs(60);
const REDIRECTS: usize = 5;
const WANTED: HeaderValue = HeaderValue::from_static("application/json, application/yaml;q=0.9, */*;q=0.5");

/// A document that was fetched, and where it was in the end.
pub(super) struct Fetched {
    pub(super) text: String,
    pub(super) url: Url,
}

/// The document's address, and what its server calls the version that is known.
pub(super) struct Origin {
    url: Url,
    /// The way to the address that the settings name; redirects to others may only lead to public ones.
    named: Net,
    public: Net,
    /// Sent along where the API is at the same origin, as the settings say.
    proof: HeaderMap,
    query: Option<String>,
    known: HeaderMap,
}

impl Origin {
    pub(super) fn new(spec: &DocumentSpec, text: &str) -> Result<Self, ToolError> {
        let url = address(text)?;
        let api = spec.url.as_deref().map(address).transpose()?;
        let is_home = api.is_some_and(|api| api.origin() == url.origin());
        let (proof, query) = if is_home { proof(spec) } else { (HeaderMap::new(), None) };
        let named = spec.net.named(url.as_str())?;
        Ok(Self { url, named, public: spec.net.clone(), proof, query, known: HeaderMap::new() })
    }

    /// The document, or nothing when it is the one that is known.
    pub(super) async fn fetch(&mut self) -> Result<Option<Fetched>, ToolError> {
        let mut url = self.url.clone();
        for _ in 0..=REDIRECTS {
            let answer = self.ask(&url).await?;
            if let Some(next) = redirect(&answer, &url) {
                url = next;
                continue;
            }
            if answer.status == StatusCode::NOT_MODIFIED {
                return Ok(None);
            }
            return self.taken(answer, url).map(Some);
        }
        Err(ToolError::unavailable("the address of the document redirects too often"))
    }

    async fn ask(&self, url: &Url) -> Result<Answer, ToolError> {
        let is_own = url.origin() == self.url.origin();
        let mut ask = Ask { timeout: PATIENCE, max_bytes: LARGEST, redirects: 0, ..Ask::get(url.clone()) };
        ask.headers.insert(ACCEPT, WANTED);
        ask.headers.extend(self.known.clone());
        if is_own {
            ask.headers.extend(self.proof.clone());
            if let Some(query) = &self.query {
                let whole = ask.url.query().map_or_else(|| query.clone(), |own| format!("{own}&{query}"));
                ask.url.set_query(Some(&whole));
            }
        }
        let net = if is_own { &self.named } else { &self.public };
        net.send(ask).await
    }

    fn taken(&mut self, answer: Answer, url: Url) -> Result<Fetched, ToolError> {
        if !answer.status.is_success() {
            let status = answer.status.as_u16();
            return Err(ToolError::unavailable(format!("the address of the document answers {status}")));
        }
        if answer.truncated {
            return Err(ToolError::new(Kind::TooLarge, "the document is larger than 32 MB"));
        }
        let marks = [(ETAG, IF_NONE_MATCH), (LAST_MODIFIED, IF_MODIFIED_SINCE)];
        let known =
            marks.into_iter().filter_map(|(said, asked)| Some((asked, answer.headers.get(said)?.clone())));
        self.known = known.collect();
        let text = String::from_utf8(answer.body.to_vec())
            .map_err(|_| ToolError::invalid("the document is no text in UTF-8"))?;
        Ok(Fetched { text, url })
    }
}

fn proof(spec: &DocumentSpec) -> (HeaderMap, Option<String>) {
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

fn redirect(answer: &Answer, from: &Url) -> Option<Url> {
    let location = answer.status.is_redirection().then(|| answer.headers.get(LOCATION))??;
    from.join(location.to_str().ok()?).ok()
}
