//! Search engine settings.

use http::HeaderValue;
use url::Url;

/// API key that can only be sent: it has no `Debug`, no `Display` and no serialization.
#[derive(Clone)]
pub struct ApiKey(String);

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self(key.trim().to_owned())
    }
}

impl ApiKey {
    /// The key as a header value marked sensitive, so that logs omit it; None if it is not a valid header value.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&self.0).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// SearXNG and Brave are queried if they are configured, DuckDuckGo always and last.
#[derive(Clone, Default)]
pub struct SearchSettings {
    pub searxng_url: Option<Url>,
    pub brave_api_key: Option<ApiKey>,
    /// Replaces Brave's origin; the key is sent there.
    pub brave_url: Option<Url>,
    /// Replaces DuckDuckGo's HTML page.
    pub duckduckgo_url: Option<Url>,
}
