//! Changes between two snapshots.

use super::CHARS_PER_TOKEN;
use super::element_refs::Refs;
use super::item_line::{LineStyle, RefNamer, format_line, is_line, is_separator};
use super::page_tree::{PageItem, PageTree};
use crate::engine::Node;
use crate::sanitize::truncate;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Lines of a page without refs, for later comparison.
#[derive(Debug, Clone, Default)]
pub struct FlatSnapshot {
    lines: Vec<(Option<Node>, String)>,
}

/// The changes, and whether the page is another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    pub text: String,
    pub truncated: bool,
    /// True if so little of the page is left that it counts as another one.
    pub is_other_page: bool,
}

pub fn flatten(tree: &PageTree, document: &Arc<str>) -> FlatSnapshot {
    let lines =
        line_items(tree).into_iter().map(|item| (item.node.clone(), line_without_refs(item, document)));
    FlatSnapshot { lines: lines.collect() }
}

fn line_without_refs(item: &PageItem, document: &Arc<str>) -> String {
    // The focus moves with every action, so it is not reported.
    let mut text = format_line(item, LineStyle::WIDE, &mut RefNamer { refs: None, document });
    for focus in [" (focused)", ", focused", "focused, "] {
        text = text.replace(focus, "");
    }
    text
}

/// Items that have their own line, in order.
fn line_items(tree: &PageTree) -> Vec<&PageItem> {
    fn add<'a>(items: &'a [PageItem], out: &mut Vec<&'a PageItem>) {
        for item in items.iter().filter(|item| !is_separator(item)) {
            out.push(item);
            if !is_line(item) {
                add(&item.children, out);
            }
        }
    }
    let mut out = Vec::new();
    add(&tree.items, &mut out);
    out
}

/// Added (`+`), removed (`-`) and changed (`~`) lines within a token budget.
pub fn changes(
    before: &FlatSnapshot,
    tree: &PageTree,
    refs: &mut Refs,
    document: &Arc<str>,
    budget: usize,
) -> Changes {
    let now = line_items(tree);
    let then: HashMap<&Node, &str> =
        before.lines.iter().filter_map(|(node, text)| Some((node.as_ref()?, text.as_str()))).collect();
    let here: HashSet<&Node> = now.iter().filter_map(|item| item.node.as_ref()).collect();
    let mut gone: Vec<(&Node, &str)> = before
        .lines
        .iter()
        .filter_map(|(node, text)| Some((node.as_ref()?, text.as_str())))
        .filter(|(node, _)| !here.contains(node))
        .collect();
    let left = now.len().saturating_sub(now.iter().filter(|item| is_new(item, &then)).count());
    let other_page = before.lines.len() > 3 && left * 5 < now.len().max(before.lines.len());
    let mut found = Vec::new();
    for item in now {
        let Some(node) = &item.node else { continue };
        let text = line_without_refs(item, document);
        match then.get(node) {
            Some(&old) if old == text => {}
            Some(_) => found.push(('~', item, String::new())),
            // The same line in another element: report only the new ref, and only if the caller knew the old one.
            None => match gone.iter().position(|(_, old)| *old == text) {
                Some(at) => {
                    let (old, _) = gone.swap_remove(at);
                    if let Some(name) = refs.get(document, old) {
                        found.push(('~', item, format!(" (was {name})")));
                    }
                }
                None => found.push(('+', item, String::new())),
            },
        }
    }
    write_changes(found, &gone, refs, document, budget, other_page)
}

fn is_new(item: &PageItem, then: &HashMap<&Node, &str>) -> bool {
    item.node.as_ref().is_none_or(|node| !then.contains_key(node))
}

fn write_changes(
    found: Vec<(char, &PageItem, String)>,
    gone: &[(&Node, &str)],
    refs: &mut Refs,
    document: &Arc<str>,
    budget: usize,
    other_page: bool,
) -> Changes {
    let mut text = String::new();
    let total = found.len() + gone.len();
    let mut written = 0;
    for (mark, item, note) in found {
        if text.len() >= budget * CHARS_PER_TOKEN {
            break;
        }
        let line_text = format_line(
            item,
            LineStyle { max_text: 140, ..LineStyle::WIDE },
            &mut RefNamer { refs: Some(refs), document },
        );
        text.push_str(&format!("{mark} {line_text}{note}\n"));
        written += 1;
    }
    for (node, old) in gone {
        if text.len() >= budget * CHARS_PER_TOKEN {
            break;
        }
        let name = refs.get(document, node).map(|name| format!(" [{name}]")).unwrap_or_default();
        text.push_str(&format!("- {}{name}\n", truncate(old, 80)));
        written += 1;
    }
    if written < total {
        text.push_str(&format!("… {} more changes; use browser_snapshot to see the page\n", total - written));
    }
    let text = text.trim_end().to_owned();
    Changes { text, truncated: written < total, is_other_page: other_page }
}
