//! Finds the content of a page: what a reader came for, without what every page of the site has.

mod cards;
mod choose;
mod kind;
mod measure;
mod meta;
mod names;
mod prune;
mod tree;
mod trim;
mod write;

#[cfg(test)]
pub mod tests;

use crate::markdown::parsed;
use dom_query::Document;
pub use kind::PageType;
use tree::Tree;
use url::Url;

/// Longer pages are read up to here.
const LONGEST: usize = 8 << 20;

/// A page's content and what it says about itself.
pub struct Extracted {
    pub title: String,
    pub byline: Option<String>,
    pub published: Option<String>,
    pub excerpt: Option<String>,
    pub lang: Option<String>,
    /// The content in plain elements: headings, paragraphs, lists, tables, code, links and images, addresses absolute.
    pub content: Document,
    pub text: String,
    pub page_type: PageType,
    /// 0 when nothing was found, 1 when everything agrees.
    pub quality: f64,
    /// Whether scripts may be needed to show it.
    pub needs_script: bool,
}

/// Pure, in bounded time and memory whatever the page.
pub fn extract(html: &str, url: &Url) -> Extracted {
    of_document(&parsed(upto(html, LONGEST)), url)
}

/// The content of a page that was parsed from [`crate::depth::shallow`] HTML.
pub fn of_document(document: &Document, url: &Url) -> Extracted {
    let tree = Tree::of(document);
    let meta = meta::meta(&tree);
    let own = meta.canonical.as_deref().and_then(|own| url.join(own).ok());
    let mut gone = prune::hidden(&tree);
    prune::furniture(&tree, &mut gone);
    let sizes = measure::measure(&tree, &gone);
    let whole = sizes.first().copied().unwrap_or_default();
    let cards = cards::groups(&tree, &sizes);
    let rest = cards::without(&tree, &gone, &cards);
    let shape = kind::Shape {
        running: choose::running(&tree, &rest),
        rest: rest.first().map_or(0, |size| size.prose),
    };
    let page_type = kind::kind(&tree, &meta, own.as_ref().unwrap_or(url), &whole, &shape);
    prune::beside(&tree, &mut gone, page_type, &cards);
    let sizes = measure::measure(&tree, &gone);
    let root = choose::choose(&tree, &sizes, page_type);
    trim::trim(&tree, &mut gone, root, &trim::Page { kind: page_type, title: &meta.title, all: &sizes });
    let mut written = write::Writer { tree: &tree, gone: &gone, base: url }.write(root);
    let words = written.text.split_whitespace().count();
    let told = meta
        .body
        .as_deref()
        .filter(|body| page_type == PageType::Article && body.split_whitespace().count() > 3 * words);
    if let Some(body) = told {
        written = write::paragraphs(body);
    }
    let kept = measure::measure(&tree, &gone).get(root).copied().unwrap_or_default();
    let quality = quality(&written.text, &kept, whole.prose);
    Extracted {
        title: meta.title,
        byline: meta.byline,
        published: meta.published,
        excerpt: meta.excerpt,
        lang: meta.lang,
        content: written.content,
        text: written.text,
        page_type,
        quality,
        needs_script: tree.scripted,
    }
}

/// By how much was found, how much of the page's prose it is, and how little of it is links.
fn quality(text: &str, kept: &measure::Measure, prose: usize) -> f64 {
    let enough = (text.split_whitespace().count() as f64 / 120.0).min(1.0);
    let covered = kept.prose as f64 / prose.max(1) as f64;
    let quality = enough * (0.4 + 0.35 * covered.min(1.0) + 0.25 * (1.0 - kept.density()));
    (quality.clamp(0.0, 1.0) * 100.0).round() / 100.0
}

fn upto(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or("")
}
