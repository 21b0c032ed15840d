//! Formats an item as one line.

use super::element_refs::Refs;
use super::page_tree::{PageItem, append_words};
use crate::sanitize::truncate;
use std::sync::Arc;

/// Limits of a line.
#[derive(Debug, Clone, Copy)]
pub struct LineStyle {
    /// Characters of a text.
    pub max_text: usize,
    /// Characters of a name.
    pub max_name: usize,
    /// Options of a field.
    pub max_options: usize,
    /// Similar siblings.
    pub max_alike: usize,
}

impl LineStyle {
    pub const FULL: LineStyle = LineStyle {
        max_text: usize::MAX,
        max_name: usize::MAX,
        max_options: usize::MAX,
        max_alike: usize::MAX,
    };
    pub const WIDE: LineStyle = LineStyle { max_text: 200, max_name: 100, max_options: 12, max_alike: 12 };
}

/// Assigns refs to the items of a line, or shows none.
pub struct RefNamer<'a> {
    pub refs: Option<&'a mut Refs>,
    pub document: &'a Arc<str>,
}

impl RefNamer<'_> {
    pub fn name(&mut self, item: &PageItem) -> Option<String> {
        let document = self.document;
        self.refs.as_mut()?.get_or_assign(document, item)
    }
}

/// Whether an item with its children fits on one line.
pub fn is_line(item: &PageItem) -> bool {
    let role = item.role.as_str();
    let takes = match role {
        "row" => item.children.iter().all(|cell| cell.children.iter().all(is_leaf)),
        "listitem" => item.children.len() <= 8 && item.children.iter().all(is_leaf),
        _ => is_text_line(role) && item.children.iter().all(is_leaf),
    };
    item.children.is_empty() || takes
}

fn is_text_line(role: &str) -> bool {
    is_heading(role)
        || matches!(
            role,
            "paragraph"
                | "cell"
                | "columnheader"
                | "rowheader"
                | "label"
                | "term"
                | "definition"
                | "caption"
                | "legend"
                | "code"
                | "blockquote"
        )
}

pub fn is_heading(role: &str) -> bool {
    role.strip_prefix('h').is_some_and(|level| level.parse::<u8>().is_ok())
}

/// Whether an item is punctuation between elements, which has no meaning on its own line.
pub fn is_separator(item: &PageItem) -> bool {
    item.role == "text"
        && item.name.chars().count() <= 3
        && item.name.chars().all(|letter| " |·•/\\–—-,;:()[]{}<>«»‹›".contains(letter))
}

fn is_leaf(item: &PageItem) -> bool {
    item.children.is_empty() || is_text_line(&item.role) && item.children.iter().all(is_leaf)
}

/// Formats the line of an item; for larger items, their first line.
pub fn format_line(item: &PageItem, style: LineStyle, namer: &mut RefNamer) -> String {
    if item.children.is_empty() || !is_line(item) {
        return element_head(item, style, namer);
    }
    match item.role.as_str() {
        "row" => {
            let cells: Vec<String> =
                item.children.iter().map(|cell| inline_parts(cell, style, namer)).collect();
            let is_header = item.children.iter().all(|cell| cell.role == "columnheader");
            format!("{}: {}", if is_header { "header" } else { "row" }, cells.join(" | "))
        }
        "paragraph" | "listitem" | "label" => inline_parts(item, style, namer),
        // A heading and its only link are shown as one.
        role if is_heading(role) && item.children.len() == 1 => {
            format!("{role} {}", inline_parts(item, style, namer))
        }
        role => format!("{role}: {}", inline_parts(item, style, namer)),
    }
}

/// Parts of a line, in order.
fn inline_parts(item: &PageItem, style: LineStyle, namer: &mut RefNamer) -> String {
    if item.children.is_empty() {
        return if item.actionable {
            element_head(item, style, namer)
        } else {
            text_line(item, style, namer)
        };
    }
    let mut joined = String::new();
    for child in &item.children {
        let part = match child.role.as_str() {
            "text" => text_line(child, style, namer),
            _ if child.children.is_empty() && !is_text_line(&child.role) => element_head(child, style, namer),
            _ => inline_parts(child, style, namer),
        };
        append_words(&mut joined, &part);
    }
    joined
}

/// A truncated text has a ref for reading the rest.
fn text_line(item: &PageItem, style: LineStyle, namer: &mut RefNamer) -> String {
    let short = truncate(&item.name, style.max_text);
    match short.len() < item.name.len() {
        true => with_ref(short, namer.name(item)),
        false => short,
    }
}

fn with_ref(mut text: String, name: Option<String>) -> String {
    if let Some(name) = name {
        text.push_str(" [ref=");
        text.push_str(&name);
        text.push(']');
    }
    text
}

/// Role, name, ref and states.
fn element_head(item: &PageItem, style: LineStyle, namer: &mut RefNamer) -> String {
    if matches!(item.role.as_str(), "text" | "paragraph" | "label" | "listitem") && item.children.is_empty() {
        return text_line(item, style, namer);
    }
    let mut line = item.role.clone();
    if !item.name.is_empty() {
        line.push_str(&format!(
            " {:?}",
            truncate(&item.name, if item.actionable { style.max_name } else { style.max_text })
        ));
    }
    if item.actionable {
        line = with_ref(line, namer.name(item));
    }
    let mut states = item.states.clone();
    if !item.options.is_empty() {
        states.push(options_state(&item.options, style));
    }
    if !states.is_empty() {
        line.push_str(&format!(" ({})", states.join(", ")));
    }
    line
}

fn options_state(all: &[String], style: LineStyle) -> String {
    let shown: Vec<String> =
        all.iter().take(style.max_options).map(|option| truncate(option, style.max_name)).collect();
    let more = match all.len() - shown.len() {
        0 => String::new(),
        more => format!(" … {more} more"),
    };
    format!("options: {}{more}", shown.join("; "))
}
