//! Copies the remaining nodes into a new tree of plain elements and into text.

use super::class_names;
use super::flat_dom::{Element, FlatDom, NodeContent};
use dom_query::{Document, NodeId, NodeRef};
use url::Url;

const ALLOWED_TAGS: &[&str] = &[
    "a",
    "abbr",
    "b",
    "blockquote",
    "br",
    "caption",
    "cite",
    "code",
    "dd",
    "del",
    "dl",
    "dt",
    "em",
    "figcaption",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
    "var",
];
const TABLE_TAGS: &[&str] = &["table", "tbody", "thead", "tfoot", "tr", "td", "th", "caption"];

/// Extracted content, as a tree that can be rendered in any format and as text.
pub struct ContentOutput {
    pub content: Document,
    pub text: String,
}

pub struct ContentWriter<'a> {
    pub tree: &'a FlatDom,
    pub removed: &'a [bool],
    pub base: &'a Url,
}

/// An open element: its end in the page, its copy, its name, and whether it is a block.
struct OpenElement<'t> {
    until: usize,
    copy: NodeId,
    tag: &'t str,
    block: bool,
}

/// State of the writer.
struct WriteState<'t> {
    content: Document,
    text: String,
    open: Vec<OpenElement<'t>>,
    /// Enclosing tables, and whether each is used for layout only.
    tables: Vec<(usize, bool)>,
}

impl<'t> WriteState<'t> {
    fn append(&self, node: NodeId) -> NodeId {
        let parent = self.open.last().map_or_else(|| self.content.root().id, |open| open.copy);
        self.content.tree.append_child_of(&parent, &node);
        node
    }

    fn element(&self, tag: &str) -> NodeRef<'_> {
        let node = self.content.tree.new_element(tag);
        self.append(node.id);
        node
    }

    fn enter(&mut self, until: usize, copy: NodeId, tag: &'t str, block: bool) {
        self.open.push(OpenElement { until, copy, tag, block });
    }

    /// Closes the elements that end before this node.
    fn close(&mut self, at: usize) {
        while let Some(open) = self.open.pop_if(|open| open.until <= at) {
            if open.block {
                self.text.push('\n');
            }
            if matches!(open.tag, "td" | "th") {
                self.text.push(' ');
            }
        }
        self.tables.retain(|(until, _)| *until > at);
    }
}

impl<'t> ContentWriter<'t> {
    pub fn write(&self, root: usize) -> ContentOutput {
        let mut work = WriteState {
            content: Document::default(),
            text: String::new(),
            open: Vec::new(),
            tables: Vec::new(),
        };
        let mut at = root;
        let end = self.tree.end(root);
        while at < end {
            work.close(at);
            let node = self.tree.nodes.get(at).filter(|_| self.removed.get(at) != Some(&true));
            match node.map(|node| &node.data) {
                None => {
                    at = self.tree.end(at);
                    continue;
                }
                Some(NodeContent::Text(text)) => {
                    work.append(work.content.tree.create_node(text.node.clone()));
                    push_single_line(self.tree.text(at).unwrap_or_default(), &mut work.text);
                }
                Some(NodeContent::Element(element)) if &*element.tag == "pre" => {
                    self.write_code(at, element, &mut work);
                    at = self.tree.end(at);
                    continue;
                }
                Some(NodeContent::Element(element)) => self.open_element(at, element, &mut work),
            }
            at += 1;
        }
        work.close(usize::MAX);
        ContentOutput { text: normalize_lines(&work.text), content: work.content }
    }

    fn open_element(&self, at: usize, element: &'t Element, work: &mut WriteState<'t>) {
        let until = self.tree.end(at);
        let tag: &'t str = &element.tag;
        let block = !element.inline;
        if block || tag == "br" {
            work.text.push('\n');
        }
        if tag == "table" {
            work.tables.push((until, !self.is_data_table(at)));
        }
        let kept = ALLOWED_TAGS.contains(&tag)
            && !(TABLE_TAGS.contains(&tag) && work.tables.last().is_none_or(|(_, only)| *only));
        match tag {
            "br" | "hr" => drop(work.element(tag)),
            "img" => self.write_image(element, work),
            "a" => {
                let href = element.attribute("href").and_then(|href| self.absolute_link(href));
                if let Some(href) = href.filter(|_| !work.open.iter().any(|open| open.tag == "a")) {
                    let copy = work.element("a");
                    copy.set_attr("href", &href);
                    work.enter(until, copy.id, tag, false);
                }
            }
            _ if kept => {
                let copy = work.element(tag);
                for name in ["colspan", "rowspan", "start"] {
                    let number = element.attribute(name).map(str::trim);
                    let fits = |text: &&str| text.parse::<u16>().is_ok_and(|number| number < 1000);
                    if let Some(number) = number.filter(fits) {
                        copy.set_attr(name, number);
                    }
                }
                work.enter(until, copy.id, tag, block);
            }
            _ if block => {
                let copy = work.element("div");
                work.enter(until, copy.id, "div", true);
            }
            _ => {}
        }
    }

    /// Whether a table contains data, as opposed to layout.
    fn is_data_table(&self, at: usize) -> bool {
        let (mut rows, mut cells, mut big) = (0, 0, 0);
        for place in self.tree.range(at).skip(1) {
            let Some(element) = self.tree.element(place) else { continue };
            match &*element.tag {
                "table" | "form" => return false,
                "th" | "caption" => {
                    return self
                        .tree
                        .range(at)
                        .skip(1)
                        .all(|at| self.tree.element(at).is_none_or(|element| &*element.tag != "table"));
                }
                "tr" => rows += 1,
                "td" => cells += 1,
                "h1" | "h2" | "h3" | "article" | "section" | "pre" => big += 1,
                _ => {}
            }
        }
        rows >= 1 && cells >= 2 * rows && big == 0
    }

    fn write_image(&self, element: &Element, work: &mut WriteState<'t>) {
        let source = ["src", "data-src"]
            .iter()
            .filter_map(|name| element.attribute(name))
            .find_map(|src| self.absolute_link(src));
        let Some(source) = source else { return };
        let copy = work.element("img");
        copy.set_attr("src", &source);
        copy.set_attr("alt", element.attribute("alt").unwrap_or(""));
    }

    fn absolute_link(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let url = self.base.join(href).ok()?;
        matches!(url.scheme(), "http" | "https" | "mailto").then(|| url.to_string())
    }

    /// Writes a code block line by line as shown, with its language and without line numbers or buttons.
    fn write_code(&self, at: usize, element: &Element, work: &mut WriteState<'t>) {
        let mut code = String::new();
        let mut place = at + 1;
        let mut lines: Vec<usize> = Vec::new();
        while place < self.tree.end(at) {
            let due = lines.iter().filter(|until| **until <= place).count();
            lines.truncate(lines.len() - due);
            if due > 0 && !code.ends_with('\n') && !code.is_empty() {
                code.push('\n');
            }
            if let Some(text) = self.tree.text(place) {
                code.push_str(text);
            } else if let Some(inner) = self.tree.element(place) {
                if &*inner.tag == "button" || inner.has_name_in(&class_names::LINE_NUMBERS) {
                    place = self.tree.end(place);
                    continue;
                }
                if &*inner.tag == "br" {
                    code.push('\n');
                } else if inner.is(&["div", "p", "li", "tr"]) {
                    if !code.ends_with('\n') && !code.is_empty() {
                        code.push('\n');
                    }
                    lines.push(self.tree.end(place));
                }
            }
            place += 1;
        }
        let code = code.trim_matches('\n').trim_end();
        if code.is_empty() {
            return;
        }
        let block = work.element("pre");
        let inner = work.content.tree.new_element("code");
        block.append_child(&inner);
        if let Some(language) = self.code_language(at, element) {
            inner.set_attr("class", &format!("language-{language}"));
        }
        inner.append_child(&work.content.tree.new_text(code));
        work.text.push('\n');
        work.text.push_str(code);
        work.text.push('\n');
    }

    /// Language named by the block itself, the code element within it, or one of two wrappers.
    fn code_language(&self, at: usize, element: &Element) -> Option<String> {
        let inner = self
            .tree
            .children(at)
            .find_map(|child| self.tree.element(child).filter(|child| &*child.tag == "code"));
        let around = self.tree.ancestors(at).take(2).filter_map(|at| self.tree.element(at));
        let mut all = std::iter::once(element).chain(inner).chain(around);
        all.find_map(|element| {
            let named = element.attribute("data-lang").or_else(|| element.attribute("data-language"));
            let class = element.attribute("class").unwrap_or("");
            let mut words = class.split_ascii_whitespace();
            let found = named.or_else(|| {
                words.find_map(|word| {
                    ["language-", "lang-", "highlight-source-", "highlight-", "brush:"]
                        .iter()
                        .find_map(|start| word.strip_prefix(start))
                })
            })?;
            let found = found.to_ascii_lowercase();
            let plain =
                found.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-' | '.'));
            (plain && !found.is_empty() && found.len() < 20 && found != "default").then_some(found)
        })
    }
}

/// Content from a text that the page provides as data.
pub fn from_plain_text(text: &str) -> ContentOutput {
    let content = Document::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let paragraph = content.tree.new_element("p");
        paragraph.append_child(&content.tree.new_text(line));
        content.root().append_child(&paragraph);
    }
    ContentOutput { text: normalize_lines(text), content }
}

/// Replaces line breaks and tabs with spaces.
fn push_single_line(text: &str, out: &mut String) {
    let mut parts = text.split(['\n', '\r', '\t']);
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        out.push(' ');
        out.push_str(part);
    }
}

/// Collapses empty lines and removes trailing white space.
fn normalize_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines() {
        let line = line.trim_end();
        if line.trim().is_empty() {
            empty += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if empty > 1 { "\n\n" } else { "\n" });
        }
        empty = 0;
        out.push_str(line);
    }
    out
}
