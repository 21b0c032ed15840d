//! Which engines there are.

use octo_toolkit::Secret;
use url::Url;

/// SearXNG and Brave are asked when they are configured; DuckDuckGo always, last.
#[derive(Clone, Default)]
pub struct SearchSettings {
    pub searxng_url: Option<Url>,
    pub brave_api_key: Option<Secret>,
    /// Instead of Brave's own origin; the key is sent there.
    pub brave_url: Option<Url>,
    /// Instead of DuckDuckGo's HTML page.
    pub duckduckgo_url: Option<Url>,
}
