//! Main content extraction: the content of a page without the boilerplate of the site.

mod boilerplate;
mod card_groups;
mod class_names;
mod content_root;
mod content_writer;
mod flat_dom;
mod measure;
mod page_metadata;
mod page_type;
mod prune;

#[cfg(test)]
pub mod tests;

use crate::html_to_markdown::parse_html;
use dom_query::Document;
use flat_dom::FlatDom;
pub use page_type::PageType;
use url::Url;

/// HTML bytes that are parsed; the rest of a longer page is ignored.
const MAX_HTML_BYTES: usize = 8 << 20;

/// Content and metadata of a page.
pub struct ExtractedContent {
    pub title: String,
    pub byline: Option<String>,
    pub published: Option<String>,
    pub excerpt: Option<String>,
    pub lang: Option<String>,
    /// Content in plain elements: headings, paragraphs, lists, tables, code, links and images, with absolute URLs.
    pub content: Document,
    pub text: String,
    pub page_type: PageType,
    /// 0 if nothing was found, 1 if all signals agree.
    pub quality: f64,
    /// Whether the page probably needs scripts to show its content.
    pub needs_script: bool,
}

/// Extracts the content of a page. Pure; time and memory are bounded for any input.
pub fn extract(html: &str, url: &Url) -> ExtractedContent {
    extract_document(&parse_html(truncate_str(html, MAX_HTML_BYTES)), url)
}

/// Extracts the content of a document parsed from [`crate::html_limits::limit_html`] HTML.
pub fn extract_document(document: &Document, url: &Url) -> ExtractedContent {
    let tree = FlatDom::from_document(document);
    let meta = page_metadata::read_metadata(&tree);
    let own = meta.canonical.as_deref().and_then(|own| url.join(own).ok());
    let mut removed = prune::mark_hidden(&tree);
    prune::mark_boilerplate(&tree, &mut removed);
    let sizes = measure::measure(&tree, &removed);
    let whole = sizes.first().copied().unwrap_or_default();
    let cards = card_groups::find_groups(&tree, &sizes);
    let rest = card_groups::measure_without(&tree, &removed, &cards);
    let shape = page_type::PageShape {
        paragraph_share: content_root::paragraph_share(&tree, &rest),
        prose_outside_cards: rest.first().map_or(0, |size| size.prose),
    };
    let page_type = page_type::classify(&tree, &meta, own.as_ref().unwrap_or(url), &whole, &shape);
    prune::mark_asides(&tree, &mut removed, page_type, &cards);
    let sizes = measure::measure(&tree, &removed);
    let root = content_root::select_root(&tree, &sizes, page_type);
    boilerplate::remove_boilerplate(
        &tree,
        &mut removed,
        root,
        &boilerplate::TrimContext { kind: page_type, title: &meta.title, all: &sizes },
    );
    let mut written = content_writer::ContentWriter { tree: &tree, removed: &removed, base: url }.write(root);
    let words = written.text.split_whitespace().count();
    let structured_body = meta
        .body
        .as_deref()
        .filter(|body| page_type == PageType::Article && body.split_whitespace().count() > 3 * words);
    if let Some(body) = structured_body {
        written = content_writer::from_plain_text(body);
    }
    let kept = measure::measure(&tree, &removed).get(root).copied().unwrap_or_default();
    let quality = quality(&written.text, &kept, whole.prose);
    ExtractedContent {
        title: meta.title,
        byline: meta.byline,
        published: meta.published,
        excerpt: meta.excerpt,
        lang: meta.lang,
        content: written.content,
        text: written.text,
        page_type,
        quality,
        needs_script: tree.has_scripts,
    }
}

/// Quality by amount of text, share of the page's prose, and link density.
fn quality(text: &str, kept: &measure::TextMeasure, prose: usize) -> f64 {
    let enough = (text.split_whitespace().count() as f64 / 120.0).min(1.0);
    let covered = kept.prose as f64 / prose.max(1) as f64;
    let quality = enough * (0.4 + 0.35 * covered.min(1.0) + 0.25 * (1.0 - kept.link_density()));
    (quality.clamp(0.0, 1.0) * 100.0).round() / 100.0
}

fn truncate_str(text: &str, max_bytes: usize) -> &str {
    let end = (0..=max_bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or("")
}
