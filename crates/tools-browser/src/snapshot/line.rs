//! One item as one line.

use super::refs::Refs;
use super::tree::{Item, glue};
use crate::clean::cut;
use std::sync::Arc;

/// How much is said of one item.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Letters of a text.
    pub text: usize,
    /// Letters of a name.
    pub name: usize,
    /// Options of a field.
    pub options: usize,
    /// Siblings that look alike.
    pub keep: usize,
}

impl Style {
    pub const WHOLE: Style =
        Style { text: usize::MAX, name: usize::MAX, options: usize::MAX, keep: usize::MAX };
    pub const WIDE: Style = Style { text: 200, name: 100, options: 12, keep: 12 };
}

/// Gives names to what a line shows, or shows none.
pub struct Namer<'a> {
    pub refs: Option<&'a mut Refs>,
    pub document: &'a Arc<str>,
}

impl Namer<'_> {
    pub fn name(&mut self, item: &Item) -> Option<String> {
        let document = self.document;
        self.refs.as_mut()?.of(document, item)
    }
}

/// Whether an item with all that is in it is one line.
pub fn is_line(item: &Item) -> bool {
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

/// Marks between elements, which mean nothing on a line of their own.
pub fn is_separator(item: &Item) -> bool {
    item.role == "text"
        && item.name.chars().count() <= 3
        && item.name.chars().all(|letter| " |·•/\\–—-,;:()[]{}<>«»‹›".contains(letter))
}

fn is_leaf(item: &Item) -> bool {
    item.children.is_empty() || is_text_line(&item.role) && item.children.iter().all(is_leaf)
}

/// The line of an item that is one; of others the first line.
pub fn line(item: &Item, style: Style, namer: &mut Namer) -> String {
    if item.children.is_empty() || !is_line(item) {
        return head(item, style, namer);
    }
    match item.role.as_str() {
        "row" => {
            let cells: Vec<String> = item.children.iter().map(|cell| parts(cell, style, namer)).collect();
            let is_header = item.children.iter().all(|cell| cell.role == "columnheader");
            format!("{}: {}", if is_header { "header" } else { "row" }, cells.join(" | "))
        }
        "paragraph" | "listitem" | "label" => parts(item, style, namer),
        // The heading and the link in it are one thing to a reader.
        role if is_heading(role) && item.children.len() == 1 => {
            format!("{role} {}", parts(item, style, namer))
        }
        role => format!("{role}: {}", parts(item, style, namer)),
    }
}

/// What stands in a line, one after the other.
fn parts(item: &Item, style: Style, namer: &mut Namer) -> String {
    if item.children.is_empty() {
        return if item.acts { head(item, style, namer) } else { text(item, style, namer) };
    }
    let mut said = String::new();
    for child in &item.children {
        let part = match child.role.as_str() {
            "text" => text(child, style, namer),
            _ if child.children.is_empty() && !is_text_line(&child.role) => head(child, style, namer),
            _ => parts(child, style, namer),
        };
        glue(&mut said, &part);
    }
    said
}

/// A text that was cut has a name by which the rest can be asked for.
fn text(item: &Item, style: Style, namer: &mut Namer) -> String {
    let short = cut(&item.name, style.text);
    match short.len() < item.name.len() {
        true => named(short, namer.name(item)),
        false => short,
    }
}

fn named(mut text: String, name: Option<String>) -> String {
    if let Some(name) = name {
        text.push_str(" [ref=");
        text.push_str(&name);
        text.push(']');
    }
    text
}

/// Role, name, ref and states.
fn head(item: &Item, style: Style, namer: &mut Namer) -> String {
    if matches!(item.role.as_str(), "text" | "paragraph" | "label" | "listitem") && item.children.is_empty() {
        return text(item, style, namer);
    }
    let mut line = item.role.clone();
    if !item.name.is_empty() {
        line.push_str(&format!(" {:?}", cut(&item.name, if item.acts { style.name } else { style.text })));
    }
    if item.acts {
        line = named(line, namer.name(item));
    }
    let mut states = item.states.clone();
    if !item.options.is_empty() {
        states.push(options(&item.options, style));
    }
    if !states.is_empty() {
        line.push_str(&format!(" ({})", states.join(", ")));
    }
    line
}

fn options(all: &[String], style: Style) -> String {
    let shown: Vec<String> = all.iter().take(style.options).map(|option| cut(option, style.name)).collect();
    let more = match all.len() - shown.len() {
        0 => String::new(),
        more => format!(" … {more} more"),
    };
    format!("options: {}{more}", shown.join("; "))
}
