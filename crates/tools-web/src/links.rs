//! The links of a page: absolute, each once.

use crate::markdown::is_hidden;
use dom_query::Document;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashSet;
use url::Url;

/// More links than these are counted, not listed.
pub const MOST: usize = 100;
const LONGEST_TEXT: usize = 160;
const LONGEST_ADDRESS: usize = 2_000;

/// A link of the page.
#[derive(Debug, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Link {
    /// What it says; the name of its picture when it has no words.
    pub text: String,
    /// Absolute address.
    pub href: String,
}

pub struct Links {
    pub listed: Vec<Link>,
    /// How many there are in all.
    pub count: usize,
}

/// Links to other pages, in the order of the page.
pub fn links(document: &Document, base: &Url, page: &Url) -> Links {
    let mut seen = HashSet::new();
    let mut links = Links { listed: Vec::new(), count: 0 };
    for node in document.root().descendants_it() {
        if !node.has_name("a") || node.ancestors_it(None).any(|outer| outer.has_name("noscript")) {
            continue;
        }
        let Some(element) = node.element_ref() else { continue };
        let href =
            element.attrs.iter().find(|attr| &*attr.name.local == "href").map(|attr| attr.value.as_ref());
        let Some(url) = href.and_then(|href| target(href, base, page)).filter(|_| !is_hidden(&element))
        else {
            continue;
        };
        if !seen.insert(url.clone()) {
            continue;
        }
        links.count += 1;
        if links.listed.len() < MOST {
            links.listed.push(Link { text: text_of(&node), href: url });
        }
    }
    links
}

fn target(href: &str, base: &Url, page: &Url) -> Option<String> {
    let href = href.trim();
    if href.is_empty() || href.starts_with('#') || href.len() > LONGEST_ADDRESS {
        return None;
    }
    let url = base.join(href).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let mut bare = url.clone();
    bare.set_fragment(None);
    // A place on this page is no link to another one.
    (url.fragment().is_none() || bare != *page).then(|| String::from(url))
}

fn text_of(node: &dom_query::NodeRef<'_>) -> String {
    let mut text = folded(&node.text());
    if text.is_empty() {
        let picture = node.descendants_it().find_map(|inner| inner.attr("alt"));
        let named = node.attr("aria-label").or_else(|| node.attr("title")).or(picture);
        text = named.map(|name| folded(&name)).unwrap_or_default();
    }
    if text.chars().count() > LONGEST_TEXT {
        text = text.chars().take(LONGEST_TEXT).collect::<String>() + "…";
    }
    text
}

fn folded(text: &str) -> String {
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
        let found = links(&Document::from(html), &base, &page);
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
        let found = links(&Document::from(html.as_str()), &base, &base);
        assert_eq!((found.listed.len(), found.count), (MOST, 250));
    }
}
