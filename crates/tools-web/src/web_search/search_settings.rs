//! Search engine settings.

use octo_toolkit::Secret;
use url::Url;

/// SearXNG and Brave are queried if they are configured, DuckDuckGo always and last.
#[derive(Clone, Default)]
pub struct SearchSettings {
    pub searxng_url: Option<Url>,
    pub brave_api_key: Option<Secret>,
    /// Replaces Brave's origin; the key is sent there.
    pub brave_url: Option<Url>,
    /// Replaces DuckDuckGo's HTML page.
    pub duckduckgo_url: Option<Url>,
}
