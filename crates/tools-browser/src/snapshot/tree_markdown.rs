//! Page text as Markdown, from the accessibility tree, so that hidden content is excluded.

use super::item_line::is_heading;
use super::page_tree::{PageItem, PageTree, append_words};

/// A link of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub text: String,
    pub url: String,
}

/// Items of the main content, or all if the page marks none.
fn main_items(tree: &PageTree) -> Vec<&PageItem> {
    let mut found: Vec<&PageItem> = Vec::new();
    for role in ["main", "article"] {
        tree.walk(&mut |item| {
            if found.is_empty() && item.role == role {
                found.push(item);
            }
        });
    }
    let aside = |item: &&PageItem| {
        !matches!(item.role.as_str(), "navigation" | "banner" | "contentinfo" | "complementary" | "search")
    };
    match found.is_empty() {
        true => tree.items.iter().filter(aside).collect(),
        false => found,
    }
}

fn roots(tree: &PageTree, main_only: bool) -> Vec<&PageItem> {
    match main_only {
        true => main_items(tree),
        false => tree.items.iter().collect(),
    }
}

/// Headings, lists, tables and links as Markdown.
pub fn markdown(tree: &PageTree, main_only: bool) -> String {
    let mut out = String::new();
    roots(tree, main_only).into_iter().for_each(|item| block(item, 0, true, &mut out));
    out.trim().to_owned()
}

/// Plain text.
pub fn plain_text(tree: &PageTree, main_only: bool) -> String {
    let mut out = String::new();
    roots(tree, main_only).into_iter().for_each(|item| block(item, 0, false, &mut out));
    out.trim().to_owned()
}

/// Links in document order, without duplicate URLs.
pub fn links(tree: &PageTree, main_only: bool) -> Vec<Link> {
    fn add(item: &PageItem, seen: &mut std::collections::HashSet<String>, out: &mut Vec<Link>) {
        if let (Some(url), "link") = (&item.url, item.role.as_str())
            && url.starts_with("http")
            && !item.name.is_empty()
            && seen.insert(url.clone())
        {
            out.push(Link { text: item.name.clone(), url: url.clone() });
        }
        item.children.iter().for_each(|child| add(child, seen, out));
    }
    let (mut seen, mut out) = (std::collections::HashSet::new(), Vec::new());
    roots(tree, main_only).into_iter().for_each(|item| add(item, &mut seen, &mut out));
    out
}

fn block(item: &PageItem, depth: usize, marked: bool, out: &mut String) {
    let role = item.role.as_str();
    match role {
        role if is_heading(role) => {
            let level = role.trim_start_matches('h').parse().unwrap_or(1_usize).clamp(1, 6);
            let marks = if marked { format!("{} ", "#".repeat(level)) } else { String::new() };
            paragraph(&format!("{marks}{}", inline(item, marked)), out);
        }
        "listitem" | "option" | "treeitem" => {
            let nested: Vec<&PageItem> = item.children.iter().filter(|child| child.role == "list").collect();
            let text = inline_of(item, marked, |child| child.role != "list");
            out.push_str(&format!("{:1$}- {text}\n", "", depth * 2));
            nested.into_iter().for_each(|list| list_of(list, depth + 1, marked, out));
        }
        "list" => {
            end_paragraph(out);
            list_of(item, depth, marked, out);
            out.push('\n');
        }
        "table" | "grid" => table(item, marked, out),
        "code" if marked => paragraph(&format!("`{}`", inline(item, false)), out),
        "paragraph" | "text" | "link" | "button" | "image" | "label" | "term" | "definition" | "caption"
        | "legend" | "blockquote" => paragraph(&inline(item, marked), out),
        _ => {
            if item.children.is_empty() {
                paragraph(&inline(item, marked), out);
            }
            item.children.iter().for_each(|child| block(child, depth, marked, out));
        }
    }
}

fn list_of(list: &PageItem, depth: usize, marked: bool, out: &mut String) {
    for item in &list.children {
        match item.role.as_str() {
            "listitem" => block(item, depth, marked, out),
            // An entry with a single link was replaced by the link.
            _ => out.push_str(&format!("{:1$}- {2}\n", "", depth * 2, inline(item, marked))),
        }
    }
}

fn table(table: &PageItem, marked: bool, out: &mut String) {
    fn rows<'a>(item: &'a PageItem, out: &mut Vec<&'a PageItem>) {
        for child in &item.children {
            if child.role == "row" { out.push(child) } else { rows(child, out) }
        }
    }
    let mut all = Vec::new();
    rows(table, &mut all);
    end_paragraph(out);
    for (at, row) in all.into_iter().enumerate() {
        let cells: Vec<String> = match row.children.is_empty() {
            true => vec![row.name.clone()],
            false => row.children.iter().map(|cell| inline(cell, marked).replace('|', "\\|")).collect(),
        };
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
        if at == 0 && marked {
            out.push_str(&format!("|{}\n", " --- |".repeat(cells.len())));
        }
    }
    out.push('\n');
}

fn inline(item: &PageItem, marked: bool) -> String {
    inline_of(item, marked, |_| true)
}

fn inline_of(item: &PageItem, marked: bool, wanted: fn(&PageItem) -> bool) -> String {
    if item.children.is_empty() || item.actionable {
        return match (item.role.as_str(), &item.url) {
            ("link", Some(url)) if marked => format!("[{}]({url})", item.name),
            ("image", _) if marked => format!("![{}]", item.name),
            _ => item.name.clone(),
        };
    }
    let mut text = String::new();
    item.children
        .iter()
        .filter(|child| wanted(child))
        .for_each(|child| append_words(&mut text, &inline(child, marked)));
    text
}

fn paragraph(text: &str, out: &mut String) {
    if !text.is_empty() {
        out.push_str(text);
        out.push_str("\n\n");
    }
}

fn end_paragraph(out: &mut String) {
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
}
