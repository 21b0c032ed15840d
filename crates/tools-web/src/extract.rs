//! Finds the content of a page: what a reader came for, without what every page of the site has.

mod cards;
mod choose;
mod kind;
mod measure;
mod meta;
mod names;
mod prune;
mod tame;
mod tree;
mod trim;
mod write;

#[cfg(test)]
mod tests;

pub use kind::PageType;
use tree::Tree;
use url::Url;

/// Longer pages are read up to here.
const LONGEST: usize = 8 << 20;

/// A page's content and what it says about itself.
#[derive(Debug, Clone)]
pub struct Extracted {
    pub title: String,
    pub byline: Option<String>,
    pub published: Option<String>,
    pub excerpt: Option<String>,
    pub lang: Option<String>,
    /// The content as plain HTML: headings, paragraphs, lists, tables, code, links and images, addresses absolute.
    pub html: String,
    pub text: String,
    pub page_type: PageType,
    /// 0 when nothing was found, 1 when everything agrees.
    pub quality: f64,
    /// Whether scripts may be needed to show it.
    pub needs_script: bool,
}

/// Pure, in bounded time and memory whatever the page.
pub fn extract(html: &str, url: &Url) -> Extracted {
    let tamed = tame::tame(upto(html, LONGEST));
    let tree = Tree::parse(&tamed.html);
    let meta = meta::meta(&tree, &tamed.data);
    let own = meta.canonical.as_deref().and_then(|own| url.join(own).ok());
    let mut gone = prune::hidden(&tree);
    prune::furniture(&tree, &mut gone);
    let sizes = measure::measure(&tree, &gone);
    let whole = sizes.first().copied().unwrap_or_default();
    let rest = cards::without(&tree, &gone);
    let shape = kind::Shape {
        running: choose::running(&tree, &rest),
        rest: rest.first().map_or(0, |size| size.prose),
    };
    let page_type = kind::kind(&tree, &meta, own.as_ref().unwrap_or(url), &whole, &shape);
    prune::beside(&tree, &mut gone, page_type);
    let roots = choose::choose(&tree, &gone, page_type);
    for root in &roots {
        trim::trim(&tree, &mut gone, *root, page_type, &meta.title);
    }
    let mut written = write::Writer { tree: &tree, gone: &gone, base: url }.write(&roots);
    let words = written.text.split_whitespace().count();
    let told = meta
        .body
        .as_deref()
        .filter(|body| page_type == PageType::Article && body.split_whitespace().count() > 3 * words);
    if let Some(body) = told {
        written = write::paragraphs(body);
    }
    let quality = quality(&written.text, &measure::measure(&tree, &gone), &roots, whole.prose);
    Extracted {
        title: meta.title,
        byline: meta.byline,
        published: meta.published,
        excerpt: meta.excerpt,
        lang: meta.lang,
        html: written.html,
        text: written.text,
        page_type,
        quality,
        needs_script: tamed.scripted,
    }
}

/// By how much was found, how much of the page's prose it is, and how little of it is links.
fn quality(text: &str, sizes: &[measure::Measure], roots: &[usize], prose: usize) -> f64 {
    let kept: Vec<&measure::Measure> = roots.iter().filter_map(|root| sizes.get(*root)).collect();
    let enough = (text.split_whitespace().count() as f64 / 120.0).min(1.0);
    let covered = kept.iter().map(|size| size.prose).sum::<usize>() as f64 / prose.max(1) as f64;
    let linked = kept.iter().map(|size| size.density()).fold(0.0, f64::max);
    let quality = enough * (0.4 + 0.35 * covered.min(1.0) + 0.25 * (1.0 - linked));
    (quality.clamp(0.0, 1.0) * 100.0).round() / 100.0
}

fn upto(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or("")
}
