//! Loaded APIs: their settings, and a cache of parsed documents.

use octo_openapi::{Credential, Document, ServerOptions};
use octo_toolkit::{Apis, CallContext, Kind, ToolError, apis::StoredApi};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

/// Maximum cached documents, and their bytes in total; least recently used ones are evicted first.
const MAX_DOCUMENTS: usize = 16;
const MAX_CACHED_BYTES: usize = 96 << 20;

/// What is stored of an API besides its document and secret.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ApiSettings {
    pub title: String,
    pub version: String,
    pub endpoint_count: usize,
    /// URL of the document.
    #[serde(default, with = "optional_url")]
    pub source: Option<Url>,
    /// Base URL of its operations, if they all share one.
    #[serde(default, with = "optional_url")]
    pub base_url: Option<Url>,
    #[serde(default, with = "optional_url")]
    pub base_url_override: Option<Url>,
    #[serde(default)]
    pub server_variables: BTreeMap<String, String>,
    #[serde(default)]
    pub auth_header_name: String,
    /// The only origin that the credential is sent to.
    #[serde(default, with = "optional_url")]
    pub auth_origin: Option<Url>,
}

/// URLs as text.
mod optional_url {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use url::Url;

    pub fn serialize<S: Serializer>(url: &Option<Url>, serializer: S) -> Result<S::Ok, S::Error> {
        url.as_ref().map(Url::as_str).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse()).transpose().map_err(serde::de::Error::custom)
    }
}

impl ApiSettings {
    pub fn server_options(&self) -> ServerOptions {
        ServerOptions {
            base_url_override: self.base_url_override.clone(),
            document_url: self.source.clone(),
            variables: self.server_variables.clone(),
        }
    }
}

/// A loaded API.
pub struct Api {
    pub document: Arc<Document>,
    pub settings: ApiSettings,
    pub credential: Option<Credential>,
}

/// Documents in memory, by revision, most recent last.
#[derive(Default)]
pub struct DocumentCache(Mutex<Vec<(String, Arc<Document>)>>);

impl DocumentCache {
    pub async fn api(&self, name: &str, apis: &Apis, cx: &CallContext) -> Result<Api, ToolError> {
        let name = name.trim();
        let Some(kept) = apis.find(&cx.caller, name).await? else {
            return Err(unknown(name, apis, cx).await);
        };
        let settings: ApiSettings = serde_json::from_str(&kept.settings).map_err(ToolError::internal)?;
        let credential = match (&kept.secret, &settings.auth_origin) {
            (Some(secret), Some(origin)) => {
                Some(Credential::new(&settings.auth_header_name, secret.expose(), origin)?)
            }
            _ => None,
        };
        let document = self.document(&kept, apis, cx).await?;
        Ok(Api { document, settings, credential })
    }

    async fn document(
        &self,
        kept: &StoredApi,
        apis: &Apis,
        cx: &CallContext,
    ) -> Result<Arc<Document>, ToolError> {
        if let Some(document) = self.get(&kept.revision) {
            return Ok(document);
        }
        let text = apis.text(&cx.caller, &kept.name, &kept.revision).await?.ok_or_else(|| {
            ToolError::new(Kind::Conflict, format!("`{}` was reloaded concurrently.", kept.name))
                .hint("Try again.")
        })?;
        let document = parse_document(text, cx).await?;
        self.put(&kept.revision, Arc::clone(&document));
        Ok(document)
    }

    fn get(&self, revision: &str) -> Option<Arc<Document>> {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = shelf.iter().position(|(known, _)| known == revision)?;
        let found = shelf.remove(at);
        let document = Arc::clone(&found.1);
        shelf.push(found);
        Some(document)
    }

    pub fn put(&self, revision: &str, document: Arc<Document>) {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.push((revision.to_owned(), document));
        while shelf.len() > 1
            && (shelf.len() > MAX_DOCUMENTS
                || shelf.iter().map(|(_, known)| known.text().len()).sum::<usize>() > MAX_CACHED_BYTES)
        {
            shelf.remove(0);
        }
    }
}

/// Parses on a blocking thread.
pub async fn parse_document(text: String, cx: &CallContext) -> Result<Arc<Document>, ToolError> {
    let work = tokio::task::spawn_blocking(move || Document::parse(text));
    cx.run(work).await?.map_err(ToolError::internal)?.map(Arc::new)
}

async fn unknown(name: &str, apis: &Apis, cx: &CallContext) -> ToolError {
    let known = apis.list(&cx.caller).await.unwrap_or_default();
    let known: Vec<&str> = known.iter().map(|api| api.name.as_str()).take(20).collect();
    let name: String = name.chars().take(80).collect();
    let error = ToolError::not_found(format!("No API is loaded as `{name}`."));
    match known.as_slice() {
        [] => error.hint("Load it first with openapi_load."),
        known => error.hint(format!("Loaded APIs: {}. Load others with openapi_load.", known.join(", "))),
    }
}
