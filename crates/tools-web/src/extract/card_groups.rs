//! Groups of cards: teasers, related products, lists of stories. Cards are alike, and each has a link.

use super::flat_dom::FlatDom;
use super::measure::{TextMeasure, measure};
use std::collections::HashMap;

/// Minimum number of cards in a group.
const MIN_CARDS: usize = 3;

/// Parents whose text is nearly all in cards.
pub fn find_groups(tree: &FlatDom, all: &[TextMeasure]) -> Vec<usize> {
    let whole = all.first().copied().unwrap_or_default();
    let mut found = Vec::new();
    for (at, element) in tree.elements() {
        let Some(size) = all.get(at) else { continue };
        if size.links < MIN_CARDS
            || element.is(&["table", "tbody", "tr", "p", "body", "main", "html", "pre", "dl"])
        {
            continue;
        }
        if chars_in_cards(tree, all, at) * 10 >= size.chars * 8 && size.prose * 10 < whole.prose * 8 {
            found.push(at);
        }
    }
    found
}

/// Measures of everything outside the groups.
pub fn measure_without(tree: &FlatDom, gone: &[bool], groups: &[usize]) -> Vec<TextMeasure> {
    let mut without = gone.to_vec();
    for group in groups.iter().copied() {
        if let Some(one) = without.get_mut(group) {
            *one = true;
        }
    }
    measure(tree, &without)
}

/// Characters in cards that are direct children of this node.
fn chars_in_cards(tree: &FlatDom, all: &[TextMeasure], at: usize) -> usize {
    let mut alike: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for child in tree.children(at) {
        if let Some(element) = tree
            .element(child)
            .filter(|element| element.is(&["div", "li", "article", "section", "a", "figure"]))
        {
            let class = element
                .attribute("class")
                .and_then(|class| class.split_ascii_whitespace().next())
                .unwrap_or("");
            alike.entry((&*element.tag, class)).or_default().push(child);
        }
    }
    let mut chars = 0;
    for group in alike.values().filter(|group| group.len() >= MIN_CARDS) {
        let cards: Vec<usize> = group
            .iter()
            .copied()
            .filter(|at| all.get(*at).is_some_and(|size| is_card(tree, *at, size)))
            .collect();
        if cards.len() * 10 >= group.len() * 7 {
            chars += group.iter().filter_map(|at| all.get(*at)).map(|size| size.chars).sum::<usize>();
        }
    }
    chars
}

fn is_card(tree: &FlatDom, at: usize, size: &TextMeasure) -> bool {
    let shown = || {
        tree.range(at)
            .filter_map(|at| tree.element(at))
            .any(|element| element.is(&["img", "h2", "h3", "h4", "h5", "picture", "time"]))
    };
    (1..=8).contains(&size.links)
        && size.chars < 500
        && (size.link_density() > 0.5 || size.link_density() > 0.08 && shown())
}
