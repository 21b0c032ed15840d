//! Links of a page: absolute and deduplicated.

use crate::html_to_markdown::is_hidden;
use dom_query::Document;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashSet;
use url::Url;

/// Maximum number of links listed; more are counted.
pub const MAX_LINKS: usize = 100;
const MAX_TEXT_CHARS: usize = 160;
const MAX_HREF_LEN: usize = 2_000;

/// A link of the page.
#[derive(Debug, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Link {
    /// Text of the link, or the name of its image.
    pub text: String,
    /// Absolute URL.
    pub href: String,
}

pub struct LinkList {
    pub listed: Vec<Link>,
    /// Total number of links.
    pub count: usize,
}

/// Links to other pages, in document order.
pub fn collect_links(document: &Document, base: &Url, page: &Url) -> LinkList {
    let mut seen = HashSet::new();
    let mut links = LinkList { listed: Vec::new(), count: 0 };
    for node in document.root().descendants_it() {
        if !node.has_name("a") || node.ancestors_it(None).any(|outer| outer.has_name("noscript")) {
            continue;
        }
        let Some(element) = node.element_ref() else { continue };
        let href =
            element.attrs.iter().find(|attr| &*attr.name.local == "href").map(|attr| attr.value.as_ref());
        let Some(url) = href.and_then(|href| resolve_href(href, base, page)).filter(|_| !is_hidden(&element))
        else {
            continue;
        };
        if !seen.insert(url.clone()) {
            continue;
        }
        links.count += 1;
        if links.listed.len() < MAX_LINKS {
            links.listed.push(Link { text: link_text(&node), href: url });
        }
    }
    links
}

fn resolve_href(href: &str, base: &Url, page: &Url) -> Option<String> {
    let href = href.trim();
    if href.is_empty() || href.starts_with('#') || href.len() > MAX_HREF_LEN {
        return None;
    }
    let url = base.join(href).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let mut bare = url.clone();
    bare.set_fragment(None);
    // An anchor on this page is not a link to another one.
    (url.fragment().is_none() || bare != *page).then(|| String::from(url))
}

fn link_text(node: &dom_query::NodeRef<'_>) -> String {
    let mut text = collapse_whitespace(&node.text());
    if text.is_empty() {
        let picture = node.descendants_it().find_map(|inner| inner.attr("alt"));
        let named = node.attr("aria-label").or_else(|| node.attr("title")).or(picture);
        text = named.map(|name| collapse_whitespace(&name)).unwrap_or_default();
    }
    if text.chars().count() > MAX_TEXT_CHARS {
        text = text.chars().take(MAX_TEXT_CHARS).collect::<String>() + "…";
    }
    text
}

fn collapse_whitespace(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_absolute_and_stand_once() {
        let page = Url::parse("https://a.example/docs/x?q=1").unwrap();
        let base = Url::parse("https://a.example/base/").unwrap();
        let html = "<a href='one'>One\n  word</a><a href='/base/one'>again</a><a href='#top'>up</a>\
                    <a href='https://a.example/docs/x?q=1#part'>here</a><a href='javascript:x()'>js</a>\
                    <a href='mailto:a@b'>mail</a><a href='//b.example/p#s'><img alt='Logo'></a>\
                    <a href='http://[bad'>bad</a><a hidden href='/secret'>x</a><a>none</a><a href='?q=2' title='T'></a>";
        let found = collect_links(&Document::from(html), &base, &page);
        let rows: Vec<(&str, &str)> =
            found.listed.iter().map(|link| (link.text.as_str(), link.href.as_str())).collect();
        let expected = [
            ("One word", "https://a.example/base/one"),
            ("Logo", "https://b.example/p#s"),
            ("T", "https://a.example/base/?q=2"),
        ];
        assert_eq!(rows, expected);
        assert_eq!(found.count, 3);
    }

    #[test]
    fn a_list_of_links_is_capped_and_counted() {
        let html: String = (0..250).map(|at| format!("<a href='/{at}'>{at}</a>")).collect();
        let base = Url::parse("https://a.example/").unwrap();
        let found = collect_links(&Document::from(html.as_str()), &base, &base);
        assert_eq!((found.listed.len(), found.count), (MAX_LINKS, 250));
    }
}
