//! Metadata from the head of a page.

use crate::html_to_markdown::parse_html;
use dom_query::NodeRef;
use schemars::JsonSchema;
use serde::Serialize;
use url::Url;

/// Bytes of the head that are read.
const MAX_HEAD_BYTES: usize = 256 * 1_024;
const MAX_VALUE_LEN: usize = 1_000;

/// Metadata of the page.
#[derive(Debug, Default, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Metadata {
    /// Canonical URL of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonical: Option<String>,
    /// Language of the page, such as en.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Name of the site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site_name: Option<String>,
    /// Open Graph type, such as article.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// URL of the preview image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Publication date, as the page gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// Modification date, as the page gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
}

#[derive(Debug)]
pub struct HeadMetadata {
    pub title: Option<String>,
    pub description: Option<String>,
    pub metadata: Metadata,
    /// Base of relative URLs.
    pub base: Url,
    /// Target of the page's meta refresh.
    pub refresh: Option<String>,
}

pub fn read_head(html: &str, url: &Url) -> HeadMetadata {
    let document = parse_html(head_of(html));
    let mut found = HeadScan::default();
    for node in document.root().descendants_it() {
        found.visit(&node);
    }
    let base = found.base.as_deref().and_then(|base| url.join(base).ok());
    let base = base.filter(|base| matches!(base.scheme(), "http" | "https")).unwrap_or_else(|| url.clone());
    let absolute = |href: String| base.join(&href).ok().map(String::from);
    let metadata = Metadata {
        canonical: found.canonical.take().and_then(absolute),
        language: found.language.take(),
        site_name: found.meta(&["og:site_name", "application-name"]),
        kind: found.meta(&["og:type"]),
        image: found.meta(&["og:image", "og:image:url", "twitter:image"]).and_then(absolute),
        author: found.meta(&["author", "article:author", "dc.creator"]),
        published: found.meta(&["article:published_time", "date", "dc.date", "pubdate"]),
        modified: found.meta(&["article:modified_time", "last-modified", "og:updated_time"]),
    };
    let title = found.title.take().filter(|title| !title.is_empty());
    HeadMetadata {
        title: title.or_else(|| found.meta(&["og:title", "twitter:title"])),
        description: found.meta(&["description", "og:description", "twitter:description"]),
        refresh: found.refresh.as_deref().and_then(refresh_target).and_then(|to| absolute(to.to_owned())),
        metadata,
        base,
    }
}

/// The page up to the beginning of its body.
fn head_of(html: &str) -> &str {
    let bytes = html.as_bytes();
    let body = |tag: &[u8]| {
        bytes.windows(tag.len()).take(MAX_HEAD_BYTES).position(|window| window.eq_ignore_ascii_case(tag))
    };
    let end = body(b"</head").or_else(|| body(b"<body")).unwrap_or_else(|| html.len().min(MAX_HEAD_BYTES));
    let end = (0..=end).rev().find(|at| html.is_char_boundary(*at)).unwrap_or(0);
    html.get(..end).unwrap_or_default()
}

#[derive(Default)]
struct HeadScan {
    title: Option<String>,
    canonical: Option<String>,
    language: Option<String>,
    base: Option<String>,
    refresh: Option<String>,
    metas: Vec<(String, String)>,
}

impl HeadScan {
    fn visit(&mut self, node: &NodeRef<'_>) {
        let Some(name) = node.node_name() else { return };
        let attr = |name: &str| {
            node.attr(name).map(|value| collapse_and_truncate(&value)).filter(|value| !value.is_empty())
        };
        match &*name {
            "html" => self.language = attr("lang"),
            "title" if self.title.is_none() => self.title = Some(collapse_and_truncate(&node.text())),
            "base" if self.base.is_none() => self.base = attr("href"),
            "link" if attr("rel").is_some_and(|rel| rel.eq_ignore_ascii_case("canonical")) => {
                self.canonical = self.canonical.take().or_else(|| attr("href"));
            }
            "meta" => {
                let key = attr("name").or_else(|| attr("property")).or_else(|| attr("itemprop"));
                if let (Some(key), Some(content)) = (key, attr("content")) {
                    self.metas.push((key.to_ascii_lowercase(), content));
                } else if attr("http-equiv").is_some_and(|kind| kind.eq_ignore_ascii_case("refresh")) {
                    self.refresh = attr("content");
                }
            }
            _ => {}
        }
    }

    /// Content of the first of these names that the page has.
    fn meta(&self, names: &[&str]) -> Option<String> {
        names
            .iter()
            .find_map(|name| self.metas.iter().find(|(key, _)| key == name))
            .map(|(_, content)| content.clone())
    }
}

/// URL in `0; url='x'`.
fn refresh_target(content: &str) -> Option<&str> {
    let at = content.to_ascii_lowercase().find("url")?;
    let rest = content.get(at + 3..)?.trim_start().strip_prefix('=')?.trim();
    Some(rest.trim_matches(['"', '\''])).filter(|to| !to.is_empty())
}

fn collapse_and_truncate(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.len() > MAX_VALUE_LEN { text.chars().take(MAX_VALUE_LEN / 4).collect() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_tells_of_itself() {
        let html = "<!doctype html><html lang=en><head><base href='/b/'><title> A\n B </title>\
                    <meta name=Description content='It &amp; that'><meta property=og:site_name content=Site>\
                    <meta property='og:image' content='pic.png'><link rel=canonical href='/own'>\
                    <meta http-equiv=refresh content=\"0; URL='next'\"></head><body><title>no</title>";
        let url = Url::parse("https://a.example/x/y").unwrap();
        let about = read_head(html, &url);
        assert_eq!(about.title.as_deref(), Some("A B"));
        assert_eq!(about.description.as_deref(), Some("It & that"));
        assert_eq!(about.base.as_str(), "https://a.example/b/");
        assert_eq!(about.refresh.as_deref(), Some("https://a.example/b/next"));
        assert_eq!(about.metadata.canonical.as_deref(), Some("https://a.example/own"));
        assert_eq!(about.metadata.image.as_deref(), Some("https://a.example/b/pic.png"));
        assert_eq!(about.metadata.language.as_deref(), Some("en"));
        assert_eq!(about.metadata.site_name.as_deref(), Some("Site"));
    }

    #[test]
    fn a_page_without_a_head_says_nothing() {
        let url = Url::parse("https://a.example/").unwrap();
        for html in ["", "plain", "<p>x", "<base href='javascript:1'><meta>"] {
            let about = read_head(html, &url);
            assert_eq!((about.title, about.description, about.metadata), (None, None, Metadata::default()));
            assert_eq!(about.base, url);
        }
    }
}
