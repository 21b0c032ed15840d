//! Finds items by text, and the item most similar to one that is gone.

use super::page_tree::{PageItem, PageTree};
use std::collections::HashSet;

/// An item and its score, up to 100.
#[derive(Debug, Clone, Copy)]
pub struct ItemMatch<'a> {
    pub item: &'a PageItem,
    pub score: u32,
}

/// Items most similar to a role and name, best first.
pub fn closest_items<'a>(tree: &'a PageTree, role: &str, name: &str, max_items: usize) -> Vec<ItemMatch<'a>> {
    let mut found = Vec::new();
    tree.walk(&mut |item| {
        if item.actionable && item.node.is_some() {
            let same = if item.role == role { 30 } else { 0 };
            let fit = same + similarity(name, &item.name) * 7 / 10;
            if fit >= 35 && similarity(name, &item.name) > 0 {
                found.push(ItemMatch { item, score: fit });
            }
        }
    });
    found.sort_by_key(|near| std::cmp::Reverse(near.score));
    found.truncate(max_items);
    found
}

/// Items that match a text and a role, best first, in document order for equal scores.
pub fn find_items<'a>(tree: &'a PageTree, text: Option<&str>, role: Option<&str>) -> Vec<ItemMatch<'a>> {
    let text = text.map(normalize).filter(|text| !text.is_empty());
    let mut found = Vec::new();
    tree.walk(&mut |item| {
        let is_role = |role: &str| {
            let heading = role == "heading" && super::item_line::is_heading(&item.role);
            item.role.eq_ignore_ascii_case(role) || heading
        };
        if item.node.is_none() || role.is_some_and(|role| !is_role(role)) {
            return;
        }
        let Some(text) = &text else {
            return found.push(ItemMatch { item, score: 50 });
        };
        let name = normalize(&item.name);
        let states = item.states.iter().any(|state| normalize(state).contains(text.as_str()));
        let fit = match () {
            () if name == *text => 90,
            () if name.starts_with(text.as_str()) => 70,
            () if name.contains(text.as_str()) => 60,
            () if states => 50,
            () => return,
        };
        found.push(ItemMatch { item, score: fit + if item.actionable { 10 } else { 0 } });
    });
    found.sort_by_key(|near| std::cmp::Reverse(near.score));
    found
}

fn normalize(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Similarity of two names, up to 100, by shared pairs of letters.
fn similarity(one: &str, other: &str) -> u32 {
    let (one, other) = (normalize(one), normalize(other));
    if one == other {
        return if one.is_empty() { 0 } else { 100 };
    }
    let pairs = |text: &str| -> HashSet<(char, char)> { text.chars().zip(text.chars().skip(1)).collect() };
    let (one, other) = (pairs(&one), pairs(&other));
    let (shared, all) = (one.intersection(&other).count(), one.len() + other.len());
    u32::try_from((200 * shared).checked_div(all).unwrap_or_default()).unwrap_or_default()
}
