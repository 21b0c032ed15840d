//! The parsed page as a flat list in document order. A node's subtree is the range up to its `end`, so every pass is a
//! loop and nothing recurses. Properties that all passes need are computed once.

use super::class_names::NameSet;
use super::measure::is_inline;
use dom_query::{Attr, Document, LocalName, NodeData, NodeId};
use std::ops::Range;

#[derive(Default)]
pub struct FlatDom {
    pub nodes: Vec<Node>,
    /// JSON-LD blocks of the page.
    pub json_ld: Vec<String>,
    /// Whether the page has scripts that may fill it.
    pub has_scripts: bool,
}

pub struct Node {
    pub parent: usize,
    /// One past the last descendant.
    pub end: usize,
    pub data: NodeContent,
}

pub enum NodeContent {
    Text(Text),
    Element(Element),
}

pub struct Text {
    /// The parser's node, cheap to clone.
    pub node: NodeData,
    /// Non-whitespace characters.
    pub chars: usize,
    /// Punctuation that ends sentences or clauses.
    pub stops: usize,
}

impl Text {
    fn of(node: &NodeData) -> Self {
        let (mut chars, mut stops) = (0, 0);
        let text = node_text(node);
        if text.is_ascii() {
            for byte in text.bytes() {
                chars += usize::from(!matches!(byte, b' ' | b'\t'..=b'\r'));
                stops += usize::from(matches!(byte, b'.' | b',' | b'!' | b'?' | b';'));
            }
        } else {
            for c in text.chars() {
                chars += usize::from(!c.is_whitespace());
                stops += usize::from(matches!(c, '.' | ',' | '!' | '?' | ';' | '。' | '、' | '，'));
            }
        }
        Self { node: node.clone(), chars, stops }
    }
}

fn node_text(node: &NodeData) -> &str {
    if let NodeData::Text { contents } = node { contents } else { "" }
}

pub struct Element {
    pub tag: LocalName,
    /// Whether it is inline content.
    pub inline: bool,
    /// Words of class and id, split at punctuation and capitals, in lower case, with a space before and after each.
    pub names: String,
    attributes: Vec<Attr>,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|known| &*known.name.local == name).map(|known| known.value.as_ref())
    }

    pub fn role(&self) -> &str {
        self.attribute("role").unwrap_or("")
    }

    pub fn is(&self, tags: &[&str]) -> bool {
        tags.contains(&&*self.tag)
    }

    /// Whether class or id contains one of these names.
    pub fn has_name_in(&self, names: &NameSet) -> bool {
        !self.names.is_empty() && names.matches(&self.names)
    }
}

/// Longer texts are compared by their beginnings.
const MAX_PLAIN_BYTES: usize = 10_000;
/// Maximum number of JSON-LD blocks that are read.
const MAX_JSON_LD_BLOCKS: usize = 64;

impl FlatDom {
    pub fn from_document(document: &Document) -> Self {
        let mut tree = Self { nodes: Vec::with_capacity(document.tree.len()), ..Self::default() };
        // Work left: a node and its parent's index, or the index of a node whose subtree ends here.
        let root = document.root().first_element_child();
        let mut left: Vec<Step> = root.iter().map(|root| Step::Enter(root.id, 0)).collect();
        while let Some(step) = left.pop() {
            let (id, parent) = match step {
                Step::Leave(at) => {
                    let end = tree.nodes.len();
                    if let Some(node) = tree.nodes.get_mut(at) {
                        node.end = end;
                    }
                    continue;
                }
                Step::Enter(id, parent) => (id, parent),
            };
            let data = document.tree.query_node(&id, |node| node_content(&node.data)).flatten();
            let Some(data) = data else {
                tree.record_script(document, id);
                continue;
            };
            let at = tree.nodes.len();
            let is_element = matches!(data, NodeContent::Element(_));
            tree.nodes.push(Node { parent, end: at + 1, data });
            if is_element {
                left.push(Step::Leave(at));
                left.extend(document.tree.child_ids_of_it(&id, true).map(|child| Step::Enter(child, at)));
            }
        }
        tree
    }

    /// Records a script. Scripts are not part of the tree.
    fn record_script(&mut self, document: &Document, id: NodeId) {
        let Some(node) = document.tree.get(&id).filter(|node| node.has_name("script")) else { return };
        let linked = node.attr("type").is_some_and(|kind| kind.to_ascii_lowercase().contains("ld+json"));
        self.has_scripts |= !linked;
        if linked && self.json_ld.len() < MAX_JSON_LD_BLOCKS {
            self.json_ld.push(node.text().to_string());
        }
    }

    pub fn element(&self, at: usize) -> Option<&Element> {
        match &self.nodes.get(at)?.data {
            NodeContent::Element(element) => Some(element),
            NodeContent::Text(_) => None,
        }
    }

    pub fn text(&self, at: usize) -> Option<&str> {
        match &self.nodes.get(at)?.data {
            NodeContent::Text(text) => Some(node_text(&text.node)),
            NodeContent::Element(_) => None,
        }
    }

    pub fn end(&self, at: usize) -> usize {
        self.nodes.get(at).map_or(at + 1, |node| node.end)
    }

    pub fn parent(&self, at: usize) -> usize {
        self.nodes.get(at).map_or(0, |node| node.parent)
    }

    pub fn range(&self, at: usize) -> Range<usize> {
        at..self.end(at)
    }

    pub fn children(&self, at: usize) -> impl Iterator<Item = usize> {
        let end = self.end(at);
        let mut next = at + 1;
        std::iter::from_fn(move || {
            let child = (next < end).then_some(next)?;
            next = self.end(child).max(child + 1);
            Some(child)
        })
    }

    /// All elements with their indices, in document order.
    pub fn elements(&self) -> impl Iterator<Item = (usize, &Element)> {
        self.nodes.iter().enumerate().filter_map(|(at, node)| match &node.data {
            NodeContent::Element(element) => Some((at, element)),
            NodeContent::Text(_) => None,
        })
    }

    pub fn first(&self, tag: &str) -> Option<usize> {
        self.elements().find(|(_, element)| &*element.tag == tag).map(|(at, _)| at)
    }

    pub fn ancestors(&self, at: usize) -> impl Iterator<Item = usize> {
        let mut now = at;
        std::iter::from_fn(move || {
            (now != 0).then(|| {
                now = self.parent(now);
                now
            })
        })
    }

    /// Text of the subtree with single spaces; long texts are truncated.
    pub fn text_content(&self, at: usize) -> String {
        let mut text = String::new();
        for piece in self.range(at).filter_map(|at| self.text(at)) {
            for word in piece.split_whitespace() {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(word);
            }
            if text.len() > MAX_PLAIN_BYTES {
                break;
            }
        }
        text
    }
}

enum Step {
    Enter(NodeId, usize),
    Leave(usize),
}

/// Returns None for invisible nodes.
fn node_content(data: &NodeData) -> Option<NodeContent> {
    let element = match data {
        NodeData::Text { .. } => return Some(NodeContent::Text(Text::of(data))),
        NodeData::Element(element) => element,
        _ => return None,
    };
    let tag: &str = &element.name.local;
    if matches!(
        tag,
        "script" | "style" | "iframe" | "noembed" | "noframes" | "svg" | "canvas" | "object" | "template"
    ) {
        return None;
    }
    let attributes: Vec<Attr> = element
        .attrs
        .iter()
        .filter(|attribute| is_relevant_attribute(&attribute.name.local))
        .cloned()
        .collect();
    let mut names = String::new();
    for named in attributes.iter().filter(|named| matches!(&*named.name.local, "class" | "id")) {
        split_name_words(&named.value, &mut names);
    }
    let names = if names.is_empty() { names } else { without_negated_words(&names) };
    let inline = is_inline(tag);
    Some(NodeContent::Element(Element { tag: element.name.local.clone(), inline, names, attributes }))
}

fn is_relevant_attribute(attribute: &str) -> bool {
    matches!(
        attribute,
        "alt"
            | "aria-hidden"
            | "aria-label"
            | "class"
            | "colspan"
            | "content"
            | "data-lang"
            | "data-language"
            | "data-src"
            | "datetime"
            | "dir"
            | "hidden"
            | "href"
            | "id"
            | "itemprop"
            | "itemtype"
            | "lang"
            | "name"
            | "property"
            | "rel"
            | "role"
            | "rowspan"
            | "src"
            | "start"
            | "style"
            | "type"
    )
}

/// `relatedPosts my-2 side_bar` becomes ` related posts my 2 side bar `.
fn split_name_words(value: &str, names: &mut String) {
    let mut before = ' ';
    names.push(' ');
    for c in value.chars().take(400) {
        if !c.is_alphanumeric() {
            if !names.ends_with(' ') {
                names.push(' ');
            }
        } else {
            if c.is_uppercase() && before.is_lowercase() {
                names.push(' ');
            }
            names.extend(c.to_lowercase());
        }
        before = c;
    }
    if !names.ends_with(' ') {
        names.push(' ');
    }
}

/// Drops words after `has`, `no` and the like: `has sidebar` means that the sidebar is elsewhere.
fn without_negated_words(names: &str) -> String {
    let mut kept = String::with_capacity(names.len());
    let mut hint = false;
    for word in names.split_ascii_whitespace() {
        if !hint {
            kept.push(' ');
            kept.push_str(word);
        }
        hint = matches!(word, "has" | "with" | "no" | "without" | "w");
    }
    if !kept.is_empty() {
        kept.push(' ');
    }
    kept
}
