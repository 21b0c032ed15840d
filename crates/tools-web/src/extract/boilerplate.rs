//! Removes boilerplate within or after the content root: headings of unrelated sections, button labels, link lists,
//! duplicates.

use super::class_names;
use super::flat_dom::FlatDom;
use super::measure::{TextMeasure, measure};
use super::page_type::PageType;
use std::collections::HashSet;

/// Headings of sections that do not belong to the text; compared with the beginning of the heading.
const UNRELATED_HEADINGS: &[&str] = &[
    "related",
    "recommended",
    "you may also",
    "you might also",
    "you may like",
    "you might like",
    "more from",
    "more on",
    "more stories",
    "more news",
    "read more",
    "read next",
    "read also",
    "also read",
    "see also",
    "share this",
    "share on",
    "share:",
    "comments",
    "leave a reply",
    "leave a comment",
    "post a comment",
    "add a comment",
    "about the author",
    "about author",
    "tags:",
    "filed under",
    "subscribe",
    "sign up",
    "newsletter",
    "follow us",
    "latest news",
    "latest posts",
    "latest stories",
    "recent posts",
    "popular",
    "most popular",
    "most read",
    "trending",
    "advertisement",
    "sponsored",
    "similar posts",
    "similar articles",
    "up next",
    "what to read next",
    "keep reading",
    "continue reading",
    "join the conversation",
    "customers also",
    "people also",
    "customer reviews",
    "recently viewed",
    "frequently bought",
    "complete the look",
    "related products",
    "create an account",
    "similar topics",
    "who is online",
    "was this helpful",
    "was this page helpful",
    "in this article",
    "on this page",
    "table of contents",
    "você pode gostar",
    "leia também",
    "veja também",
    "lea también",
    "te puede interesar",
    "à lire aussi",
    "lire aussi",
    "mehr zum thema",
    "lesen sie auch",
    "das könnte sie",
    "читайте также",
    "leggi anche",
    "artículos relacionados",
    "artigos relacionados",
    "noticias relacionadas",
    "noticias relacionadas",
    "weitere artikel",
    "articles similaires",
    "関連記事",
    "相关阅读",
    "相关文章",
    "baca juga",
    "artikel terkait",
];
/// Lines that are button labels or notices.
const BOILERPLATE_LINES: &[&str] = &[
    "advertisement",
    "share",
    "tweet",
    "print",
    "email",
    "loading",
    "loading...",
    "loading…",
    "share this",
    "share this article",
    "share this story",
    "share this post",
    "copy link",
    "read more",
    "learn more",
    "click here",
    "sign up",
    "subscribe",
    "subscribe now",
    "follow",
    "save",
    "comments",
    "comment",
    "reply",
    "report",
    "close",
    "menu",
    "search",
    "back to top",
    "skip to content",
    "skip to main content",
    "story continues below advertisement",
    "story continues below",
    "continue reading",
    "facebook",
    "twitter",
    "linkedin",
    "pinterest",
    "whatsapp",
    "instagram",
    "view comments",
    "show comments",
    "ad",
    "related",
    "sponsored",
    "more",
    "next",
    "previous",
    "add to cart",
    "add to wishlist",
    "buy now",
    "see more",
    "show more",
    "view all",
    "see all",
    "load more",
    "posted on",
    "published",
    "updated",
    "image",
    "anuncio",
    "publicidade",
    "publicidad",
    "anzeige",
    "werbung",
    "iklan",
    "compartilhe",
    "compartir",
    "partager",
];

/// The page that content is trimmed from.
pub struct TrimContext<'a> {
    pub kind: PageType,
    pub title: &'a str,
    /// Measures before anything is removed.
    pub all: &'a [TextMeasure],
}

pub fn remove_boilerplate(tree: &FlatDom, gone: &mut [bool], root: usize, page: &TrimContext<'_>) {
    let TrimContext { kind, title, all } = *page;
    let text = matches!(kind, PageType::Article | PageType::Documentation | PageType::Other);
    if !matches!(kind, PageType::Listing | PageType::Collection) {
        remove_unrelated_sections(tree, gone, root, all);
    }
    if kind == PageType::Article {
        remove_link_lists(tree, gone, root);
    }
    if matches!(kind, PageType::Article | PageType::Forum) {
        remove_title_lines(tree, gone, root, title);
    }
    let all = measure(tree, gone);
    let mut seen: HashSet<String> = HashSet::new();
    let mut at = root;
    while at < tree.end(root) {
        let skip = gone.get(at).copied().unwrap_or(true);
        if skip {
            at = tree.end(at);
            continue;
        }
        if let Some(element) = tree.element(at)
            && !element.inline
            && !element.is(&["td", "th", "tr", "pre", "table", "tbody"])
            && let Some(size) = all.get(at)
            && size.chars > 0
            && size.chars < 5000
            && is_leaf(tree, at)
        {
            let said = || tree.text_content(at).to_lowercase();
            let line = size.chars < 60
                && BOILERPLATE_LINES.contains(&said().trim_matches([' ', ':', '.', '»', '›', '>', '·', '|']));
            let again = size.chars >= 80 && kind != PageType::Forum && !seen.insert(said());
            if line
                && (text || kind == PageType::Product || kind == PageType::Forum || kind == PageType::Service)
                || again
            {
                mark(gone, at);
            }
        }
        at += 1;
    }
}

fn mark(gone: &mut [bool], at: usize) {
    if let Some(one) = gone.get_mut(at) {
        *one = true;
    }
}

/// Whether a block contains no other blocks.
fn is_leaf(tree: &FlatDom, at: usize) -> bool {
    tree.range(at).skip(1).take(60).all(|at| tree.element(at).is_none_or(|element| element.inline))
}

fn heading_level(tag: &str) -> Option<u8> {
    match tag.as_bytes() {
        [b'h', digit @ b'1'..=b'6'] => Some(digit - b'0'),
        _ => None,
    }
}

/// Removes unrelated headings together with their sections.
fn remove_unrelated_sections(tree: &FlatDom, gone: &mut [bool], root: usize, all: &[TextMeasure]) {
    let size = |at: usize| all.get(at).copied().unwrap_or_default();
    let whole = size(root);
    for at in tree.range(root).skip(1) {
        if gone.get(at).copied().unwrap_or(true) {
            continue;
        }
        let Some(element) = tree.element(at) else { continue };
        let Some(own) = heading_level(&element.tag).or_else(|| heading_like(tree, at, &size(at))) else {
            continue;
        };
        let said = tree.text_content(at).to_lowercase();
        if said.chars().count() > 60 || !UNRELATED_HEADINGS.iter().any(|start| said.starts_with(start)) {
            continue;
        }
        let small =
            |part: &TextMeasure| part.prose * 10 < whole.prose * 4 && part.chars * 10 < whole.chars * 5;
        // The block that starts with the heading.
        let mut block = at;
        for above in tree.ancestors(at).take_while(|above| *above != root && *above > root) {
            let before = tree
                .range(above)
                .take_while(|inner| *inner != at)
                .any(|inner| tree.text(inner).is_some_and(|text| !text.trim().is_empty()));
            let plain = size(above).prose > 120
                && size(above).link_density() < 0.1
                && !said.contains("comment")
                && !said.contains("review");
            if before || plain || !small(&size(above)) {
                break;
            }
            block = above;
        }
        mark(gone, block);
        if block != at && size(block).chars > size(at).chars + 20 {
            continue;
        }
        let parent = tree.parent(block);
        for next in tree.children(parent).filter(|child| *child > block) {
            let inner = tree
                .range(next)
                .filter_map(|at| tree.element(at))
                .find_map(|element| heading_level(&element.tag));
            if inner.is_some_and(|level| level <= own) || !small(&size(next)) {
                break;
            }
            // Prose with few links may be the text that continues after an inset.
            if size(next).prose > 0
                && size(next).link_density() < 0.2
                && !said.contains("comment")
                && !said.contains("review")
            {
                break;
            }
            if heading_level(&element.tag).is_none() && size(next).link_density() < 0.5 {
                break;
            }
            mark(gone, next);
        }
    }
}

/// Level of a line that looks like a heading: short and bold, or with the class name of a heading.
fn heading_like(tree: &FlatDom, at: usize, size: &TextMeasure) -> Option<u8> {
    let element = tree.element(at)?;
    let short = size.chars > 3 && size.chars < 45 && element.is(&["div", "p", "span", "strong", "b"]);
    (short
        && (element.has_name_in(&class_names::HEADINGS) || element.is(&["strong", "b", "p", "div"]))
        && is_leaf(tree, at))
    .then_some(6)
}

/// Removes blocks that consist of links only.
fn remove_link_lists(tree: &FlatDom, gone: &mut [bool], root: usize) {
    let all = measure(tree, gone);
    let whole = all.get(root).copied().unwrap_or_default();
    for at in tree.range(root).skip(1) {
        let Some(element) =
            tree.element(at).filter(|element| element.is(&["ul", "ol", "div", "section", "p", "dl"]))
        else {
            continue;
        };
        let Some(size) = all.get(at) else { continue };
        let only_links = size.link_density() > 0.75 && size.links >= 2
            || size.links == 1 && size.link_density() > 0.95 && element.is(&["div", "section"]);
        if only_links && size.prose == 0 && size.chars * 3 < whole.chars {
            mark(gone, at);
        }
    }
}

/// Removes the title and the lines before the first paragraph: names, dates, buttons.
fn remove_title_lines(tree: &FlatDom, gone: &mut [bool], root: usize, title: &str) {
    let all = measure(tree, gone);
    let title = title.to_lowercase();
    let Some(first) = tree.range(root).find(|at| {
        tree.element(*at).is_some_and(|element| !element.inline)
            && is_leaf(tree, *at)
            && all.get(*at).is_some_and(|size| size.prose > 0)
    }) else {
        return;
    };
    for at in tree.range(root).skip(1) {
        let Some(element) = tree.element(at) else { continue };
        let Some(size) = all.get(at) else { continue };
        if &*element.tag == "h1" && size.prose == 0 {
            mark(gone, at);
        } else if at < first
            && size.chars < 80
            && !element.inline
            && is_leaf(tree, at)
            && !element.is(&["td", "th", "li", "pre"])
        {
            let said = tree.text_content(at).to_lowercase();
            let dated = said.chars().filter(char::is_ascii_digit).count() >= 4;
            if said.starts_with("by ") || dated || title.contains(&said) {
                mark(gone, at);
            }
        }
    }
}
