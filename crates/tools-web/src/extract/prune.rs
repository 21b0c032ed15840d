//! Removal of hidden elements and boilerplate before the content root is selected.

use super::class_names;
use super::flat_dom::{Element, FlatDom};
use super::measure::{TextMeasure, measure};
use super::page_type::PageType;

const INVISIBLE_TAGS: &[&str] = &[
    "head", "script", "style", "noscript", "template", "svg", "iframe", "object", "embed", "audio", "video",
    "canvas", "link", "meta", "input", "select", "textarea", "button", "datalist", "map", "dialog",
    "progress", "meter",
];

/// Marks elements that are not visible or not meant to be read.
pub fn mark_hidden(tree: &FlatDom) -> Vec<bool> {
    let mut gone = vec![false; tree.nodes.len()];
    for (at, element) in tree.elements() {
        if element.is(INVISIBLE_TAGS) || is_hidden(element) && !is_react_streamed(element) {
            mark(&mut gone, at);
        }
    }
    // If nearly all text is hidden, a script reveals it.
    let hidden: Vec<usize> = tree
        .elements()
        .filter(|(at, element)| gone.get(*at) == Some(&true) && !element.is(INVISIBLE_TAGS))
        .map(|(at, _)| at)
        .collect();
    if !hidden.is_empty() {
        let all = measure(tree, &vec![false; tree.nodes.len()]);
        let visible = measure(tree, &gone).first().map_or(0, |whole| whole.chars);
        for at in hidden {
            if all.get(at).is_some_and(|size| size.chars > visible)
                && let Some(one) = gone.get_mut(at)
            {
                *one = false;
            }
        }
    }
    // Some sites show everything by script and repeat it in noscript.
    let without: Vec<usize> =
        tree.elements().filter(|(_, element)| &*element.tag == "noscript").map(|(at, _)| at).collect();
    let little = || measure(tree, &gone).first().is_none_or(|whole| whole.prose < 300);
    let shown_without = !without.is_empty() && little();
    for at in without.iter().filter(|_| shown_without) {
        if let Some(one) = gone.get_mut(*at) {
            *one = false;
        }
    }
    gone
}

fn is_hidden(element: &Element) -> bool {
    let styled = element.attribute("style").is_some_and(|style| {
        let style: String =
            style.chars().filter(|c| !c.is_whitespace()).take(300).collect::<String>().to_ascii_lowercase();
        style.contains("display:none") || style.contains("visibility:hidden")
    });
    styled || element.attribute("hidden").is_some() || element.attribute("aria-hidden") == Some("true")
}

/// React streams late parts of a page in hidden elements, which a script moves into place.
fn is_react_streamed(element: &Element) -> bool {
    element.attribute("id").is_some_and(|id| id.starts_with("S:"))
}

fn mark(gone: &mut [bool], at: usize) {
    if let Some(one) = gone.get_mut(at) {
        *one = true;
    }
}

/// Marks what every page of a site has: navigation, banners, footers.
pub fn mark_boilerplate(tree: &FlatDom, gone: &mut [bool]) {
    mark_where(tree, gone, |at, element, size, share| {
        is_boilerplate_tag(tree, at, element, size, share)
            || share < 0.3 && element.has_name_in(&class_names::BOILERPLATE)
    });
}

/// Marks what is beside or after the content, by page type.
pub fn mark_asides(tree: &FlatDom, gone: &mut [bool], kind: PageType, cards: &[usize]) {
    let text = matches!(kind, PageType::Article | PageType::Documentation);
    let goods = matches!(kind, PageType::Product | PageType::Collection);
    if matches!(kind, PageType::Article | PageType::Documentation | PageType::Product) {
        for group in cards {
            mark(gone, *group);
        }
    }
    mark_where(tree, gone, |at, element, _, share| match kind {
        PageType::Article if &*element.tag == "figcaption" || element.has_name_in(&class_names::CAPTIONS) => {
            share < 0.3
        }
        _ if text && &*element.tag == "header" && is_inside_main(tree, at) => share < 0.3,
        _ if text && element.has_name_in(&class_names::COMMENTS) => share < 0.7,
        _ if text => share < 0.3 && element.has_name_in(&class_names::ARTICLE_ASIDES),
        PageType::Forum => share < 0.3 && element.has_name_in(&class_names::FORUM_CHROME),
        _ if goods => share < 0.4 && element.has_name_in(&class_names::PRODUCT_ASIDES),
        PageType::Other | PageType::Service if element.has_name_in(&class_names::COMMENTS) => share < 0.5,
        _ => share < 0.3 && element.has_name_in(&class_names::GENERIC_ASIDES),
    });
}

fn mark_where(tree: &FlatDom, gone: &mut [bool], drop: impl Fn(usize, &Element, &TextMeasure, f64) -> bool) {
    let all = measure(tree, gone);
    let whole = all.first().copied().unwrap_or_default();
    for (at, element) in tree.elements() {
        let Some(size) = all.get(at) else { continue };
        if element.is(&["html", "body", "main"]) || gone.get(at).copied().unwrap_or(true) {
            continue;
        }
        let share = share(size, &whole);
        if drop(at, element, size, share) {
            mark(gone, at);
        }
    }
}

fn is_inside_main(tree: &FlatDom, at: usize) -> bool {
    tree.ancestors(at)
        .filter_map(|at| tree.element(at))
        .any(|above| above.is(&["main", "article"]) || above.role() == "main")
}

/// Share of the page's prose, or of its text if it has hardly any prose.
fn share(size: &TextMeasure, whole: &TextMeasure) -> f64 {
    let text = size.chars as f64 / whole.chars.max(1) as f64;
    let prose = size.prose as f64 / whole.prose.max(1) as f64;
    if whole.prose < 500 { text } else { text.max(prose) }
}

fn is_boilerplate_tag(tree: &FlatDom, at: usize, element: &Element, size: &TextMeasure, share: f64) -> bool {
    let role = element.role();
    if matches!(
        role,
        "navigation"
            | "banner"
            | "contentinfo"
            | "search"
            | "dialog"
            | "alertdialog"
            | "menu"
            | "menubar"
            | "tablist"
    ) {
        return share < 0.5;
    }
    match &*element.tag {
        "nav" | "footer" => share < 0.5,
        "aside" => share < 0.4,
        "header" if is_inside_main(tree, at) => size.link_density() > 0.5,
        "header" | "form" => share < 0.3,
        _ => role == "complementary" && share < 0.4,
    }
}
