//! GitLab's OpenAPI document: fetched once, cached for some hours.
//!
//! An instance does not serve it. It is in GitLab's own repository, under the tag of each version.

use super::operation_index::OperationIndex;
use super::{GitlabRequest, Instance};
use crate::forge_http;
use http::{Method, StatusCode};
use moka::future::Cache;
use octo_toolkit::hidden_text::strip_hidden_owned;
use octo_toolkit::{CallContext, Kind, Net, Remedy, ToolError};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

const DOCUMENT_TTL: Duration = Duration::from_secs(6 * 3600);
const FETCH_TIMEOUT: Duration = Duration::from_secs(60);
const PUBLIC_HOST: &str = "gitlab.com";
const REPOSITORY: &str = "https://gitlab.com/gitlab-org/gitlab/-/raw/";
/// The newer format first; versions before 18 have only the older one.
const DOCUMENT_PATHS: [&str; 2] = ["doc/api/openapi/openapi_v3.yaml", "doc/api/openapi/openapi_v2.yaml"];

/// The document and its source.
pub struct OpenApiDocument {
    pub text: String,
    pub index: OperationIndex,
    pub source: String,
}

pub struct DocumentCache {
    cache: Cache<(), Arc<OpenApiDocument>>,
    repository: String,
}

impl DocumentCache {
    pub fn new() -> Self {
        Self::with_repository(REPOSITORY.to_owned())
    }

    /// Uses another location for GitLab's repository.
    pub fn with_repository(repository: String) -> Self {
        Self { cache: Cache::builder().max_capacity(1).time_to_live(DOCUMENT_TTL).build(), repository }
    }
}

impl Instance {
    /// Returns the document, cached or fetched. Concurrent callers share one request.
    pub async fn document(&self, net: &Net, cx: &CallContext) -> Result<Arc<OpenApiDocument>, ToolError> {
        loop {
            match cx.run(self.documents.cache.try_get_with((), self.fetch_document(net, cx))).await? {
                Ok(document) => return Ok(document),
                // Another call was cancelled while this one waited for it.
                Err(error) if error.kind == Kind::Cancelled && !cx.cancel.is_cancelled() => {}
                Err(error) => return Err((*error).clone()),
            }
        }
    }

    async fn fetch_document(&self, net: &Net, cx: &CallContext) -> Result<Arc<OpenApiDocument>, ToolError> {
        let mut last = None;
        for source in self.sources(net, cx).await? {
            match self.text(&source, net, cx).await {
                Ok(Some(text)) => return read(text, source).await.map(Arc::new),
                Ok(None) => {}
                Err(error) if error.kind == Kind::Cancelled => return Err(error),
                Err(error) => last = Some(error),
            }
        }
        Err(unavailable_error(last))
    }

    /// Where to look, in order: only the setting; or the version of this instance, then the newest.
    async fn sources(&self, net: &Net, cx: &CallContext) -> Result<Vec<Url>, ToolError> {
        if let Some(set) = &self.settings.openapi_url {
            return Ok(vec![set.clone()]);
        }
        let mut refs = Vec::new();
        if self.api()?.host_str() != Some(PUBLIC_HOST) {
            refs.extend(self.tag(net, cx).await);
        }
        refs.push("master".to_owned());
        let texts = refs.iter().flat_map(|name| {
            DOCUMENT_PATHS.map(|file| format!("{}{name}/{file}", self.documents.repository))
        });
        texts.map(|text| Url::parse(&text).map_err(ToolError::internal)).collect()
    }

    /// Tag of the instance's version; `None` if unknown, because it requires authentication.
    async fn tag(&self, net: &Net, cx: &CallContext) -> Option<String> {
        let mut url = self.api().ok()?;
        url.path_segments_mut().ok()?.push("version");
        let timeout = cx.time_left().min(Duration::from_secs(10));
        let answer =
            self.send(GitlabRequest { method: Method::GET, url, body: None, timeout }, net, cx).await.ok()?;
        let version = serde_json::from_slice::<Value>(&answer.body).ok()?;
        tag(version.get("version")?.as_str()?)
    }

    /// The text at a URL; `None` if there is none.
    async fn text(&self, source: &Url, net: &Net, cx: &CallContext) -> Result<Option<String>, ToolError> {
        let timeout = cx.time_left().min(FETCH_TIMEOUT);
        let errand = GitlabRequest { method: Method::GET, url: source.clone(), body: None, timeout };
        let answer = self.send(errand, net, cx).await?;
        match answer.status {
            status if status.is_success() => {}
            StatusCode::NOT_FOUND => return Ok(None),
            status => {
                let words = forge_http::error_message(&answer.body);
                return Err(ToolError::unavailable(format!(
                    "{} returned status {status}{words}",
                    host(source)
                )));
            }
        }
        if answer.truncated {
            return Err(ToolError::new(
                Kind::TooLarge,
                format!("The document of {} is too large.", host(source)),
            ));
        }
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        // Many servers return a login page instead of an error.
        let is_page = text.trim_start().starts_with('<');
        Ok((!is_page).then(|| strip_hidden_owned(text, &mut 0)))
    }
}

async fn read(text: String, source: Url) -> Result<OpenApiDocument, ToolError> {
    let read = tokio::task::spawn_blocking(move || {
        let book = OperationIndex::parse(text.clone())?;
        Ok(OpenApiDocument { text, index: book, source: source.to_string() })
    });
    read.await.map_err(ToolError::internal)?
}

/// `17.5.2-ee` and `17.5.2` both have the tag `v17.5.2-ee`; unreleased versions have none.
fn tag(version: &str) -> Option<String> {
    let number = version.strip_suffix("-ee").unwrap_or(version);
    let plain = number.split('.').count() == 3
        && number.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    plain.then(|| format!("v{number}-ee"))
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or("the server")
}

fn unavailable_error(last: Option<ToolError>) -> ToolError {
    let why = last.as_ref().map(|error| format!(" ({})", error.message)).unwrap_or_default();
    ToolError::unavailable(format!("GitLab's OpenAPI document is not available{why}."))
        .hint(
            "An instance does not serve it; it is read from GitLab's repository on gitlab.com. If that is unreachable, the \
             operator can set gitlab.openapi_url to a copy of doc/api/openapi/openapi_v3.yaml. gitlab_request works \
             without it.",
        )
        .remedy(Remedy::settings(&["gitlab.openapi_url"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_a_tag_when_it_is_released() {
        for (version, expected) in [
            ("17.5.2-ee", Some("v17.5.2-ee")),
            ("17.5.2", Some("v17.5.2-ee")),
            ("18.0.0-pre", None),
            ("18.0", None),
            ("../../evil", None),
            ("1..2", None),
            ("", None),
        ] {
            assert_eq!(tag(version).as_deref(), expected, "{version}");
        }
    }
}
