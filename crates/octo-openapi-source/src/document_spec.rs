//! Settings of one API.

use octo_grants::Net;
use octo_grants::config_dirs::FileApproval;
use octo_model::Secret;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Location of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentSource {
    File(PathBuf),
    Url(String),
}

/// Settings of one API.
#[derive(Clone)]
pub struct DocumentSpec {
    pub name: String,
    pub document: DocumentSource,
    /// Base URL of the API, instead of the document's servers.
    pub url: Option<String>,
    /// Sent with every request to the API; may contain secrets.
    pub headers: BTreeMap<String, String>,
    /// Query parameter sent with every request.
    pub query_key: Option<(String, Secret)>,
    /// Egress. The API's own host is allowed because it is configured; see [`Net::for_configured_host`].
    pub net: Net,
    /// Timeout of a call.
    pub timeout: Duration,
    /// Polling interval of a document at a URL.
    pub refresh: Duration,
    /// Approval of a document in a file.
    pub approval: Option<FileApproval>,
}

impl DocumentSpec {
    pub fn new(name: impl Into<String>, document: DocumentSource) -> Self {
        Self {
            name: name.into(),
            document,
            url: None,
            headers: BTreeMap::new(),
            query_key: None,
            net: Net::default(),
            timeout: Duration::from_secs(300),
            refresh: Duration::from_secs(600),
            approval: None,
        }
    }

    pub(crate) fn has_secrets(&self) -> bool {
        !self.headers.is_empty() || self.query_key.is_some()
    }
}
