//! A search result, as returned to the caller.

use super::result_url;
use crate::html_limits::limit_html;
use dom_query::Document;
use octo_toolkit::hidden_text::strip_hidden;
use schemars::JsonSchema;
use serde::Serialize;

const MAX_TITLE_CHARS: usize = 200;
const MAX_SNIPPET_CHARS: usize = 500;
/// Maximum characters of HTML, before tags are removed.
const MAX_HTML_CHARS: usize = 5000;
/// Maximum length of a URL; longer ones carry data.
const MAX_URL_LEN: usize = 2000;

/// A search result.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SearchResult {
    /// Title of the page.
    pub title: String,
    /// URL, without tracking parameters.
    pub url: String,
    /// Snippet shown by the engine.
    pub snippet: String,
    /// The engine that found it; several when they agree.
    pub engine: String,
    /// Publication date, if the engine knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// Score of the engine, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

impl SearchResult {
    /// Returns None if the URL is not readable.
    pub fn new(title: &str, url: &str, snippet: &str, engine: &str) -> Option<Self> {
        let url = result_url::clean_url(url).filter(|url| url.as_str().len() <= MAX_URL_LEN)?;
        let title = match clean_line(title, MAX_TITLE_CHARS) {
            title if title.is_empty() => url.host_str().unwrap_or_default().to_owned(),
            title => title,
        };
        Some(Self {
            title,
            url: url.into(),
            snippet: clean_line(snippet, MAX_SNIPPET_CHARS),
            engine: clean_line(engine, MAX_TITLE_CHARS),
            published: None,
            score: None,
        })
    }

    pub fn with_published(mut self, when: Option<&str>) -> Self {
        self.published = when.map(|when| clean_line(when, 40)).filter(|when| !when.is_empty());
        self
    }

    /// Merges the result of another engine for the same page.
    pub fn merge(&mut self, other: Self) {
        for name in other.engine.split(", ") {
            if !self.engine.split(", ").any(|known| known == name) {
                self.engine = format!("{}, {name}", self.engine);
            }
        }
        if self.snippet.is_empty() {
            self.snippet = other.snippet;
        }
        self.published = self.published.take().or(other.published);
    }
}

/// Text without hidden characters, on one line, truncated to `max_chars`.
pub fn clean_line(text: &str, max_chars: usize) -> String {
    let text = strip_hidden(text).text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
        None => text,
    }
}

/// Text of a snippet in HTML.
pub fn strip_html(html: &str) -> String {
    let html: String = html.chars().take(MAX_HTML_CHARS).collect();
    if html.contains(['<', '&']) {
        Document::fragment(limit_html(&html).as_ref()).text().to_string()
    } else {
        html
    }
}
