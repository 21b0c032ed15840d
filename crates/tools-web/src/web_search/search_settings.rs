//! Which engines there are.

use http::HeaderValue;
use url::Url;

/// A key that can be sent and nothing else: it has no `Debug`, no `Display` and no way to serialize.
#[derive(Clone)]
pub struct ApiKey(String);

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self(key.trim().to_owned())
    }
}

impl ApiKey {
    /// The key as a header that does not show itself in logs either; nothing when it cannot be one.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&self.0).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// SearXNG and Brave are asked when they are configured; DuckDuckGo always, last.
#[derive(Clone, Default)]
pub struct SearchSettings {
    pub searxng_url: Option<Url>,
    pub brave_api_key: Option<ApiKey>,
    /// Instead of Brave's own origin; the key is sent there.
    pub brave_url: Option<Url>,
    /// Instead of DuckDuckGo's HTML page.
    pub duckduckgo_url: Option<Url>,
}
