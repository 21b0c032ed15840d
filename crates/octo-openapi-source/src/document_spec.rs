//! What the settings say of one API.

use octo_grants::Net;
use octo_grants::config_dirs::FileApproval;
use octo_model::Secret;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Where a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentSource {
    File(PathBuf),
    Url(String),
}

/// What the settings say of one API.
#[derive(Clone)]
pub struct DocumentSpec {
    pub name: String,
    pub document: DocumentSource,
    /// Where the API is, in place of what the document says.
    pub url: Option<String>,
    /// Go with every request to the API, and may hold secrets.
    pub headers: BTreeMap<String, String>,
    /// A parameter of the query that goes with every request.
    pub query_key: Option<(String, Secret)>,
    /// The way out. The API's own host is allowed because it was named; see [`Net::named`].
    pub net: Net,
    /// The longest that one call may take.
    pub timeout: Duration,
    /// How often a document with an address is asked for again.
    pub refresh: Duration,
    /// What of a document that is a file may be used.
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
