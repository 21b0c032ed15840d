//! One result, as it is told to the caller.

use super::result_url;
use crate::html_limits::limit_html;
use dom_query::Document;
use octo_toolkit::hidden_text::strip_hidden;
use schemars::JsonSchema;
use serde::Serialize;

const MAX_TITLE_CHARS: usize = 200;
const MAX_SNIPPET_CHARS: usize = 500;
/// Of HTML, before it is known how much of it is text.
const MAX_HTML_CHARS: usize = 5000;
/// Longer addresses are data, not places.
const MAX_URL_LEN: usize = 2000;

/// One page that was found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SearchResult {
    /// Title of the page.
    pub title: String,
    /// Its address, without tracking parameters.
    pub url: String,
    /// What the engine shows of it.
    pub snippet: String,
    /// The engine that found it; several when they agree.
    pub engine: String,
    /// When it was published, as far as the engine knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// The engine's own measure, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

impl SearchResult {
    /// Nothing when the address is none that could be read.
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

    /// Takes over what another engine knew of the same page.
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

/// Text without what a reader would not see, on one line, at most so many characters.
pub fn clean_line(text: &str, max_chars: usize) -> String {
    let text = strip_hidden(text).text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
        None => text,
    }
}

/// The text of a snippet that an engine gives as HTML.
pub fn strip_html(html: &str) -> String {
    let html: String = html.chars().take(MAX_HTML_CHARS).collect();
    if html.contains(['<', '&']) {
        Document::fragment(limit_html(&html).as_ref()).text().to_string()
    } else {
        html
    }
}
