//! The parsed page as one list in reading order: a node's subtree is the range up to its `end`, so that every pass is a
//! loop and nothing recurses.

use dom_query::{Document, NodeData, NodeId};
use std::ops::Range;

pub struct Tree {
    pub nodes: Vec<Node>,
}

pub struct Node {
    pub parent: usize,
    /// One past the last node beneath this one.
    pub end: usize,
    pub data: Data,
}

pub enum Data {
    Text(String),
    Element(Element),
}

pub struct Element {
    pub tag: String,
    /// Class and id, split into words at punctuation and capitals, in lower case, with a space before and after each.
    pub names: String,
    pub attributes: Vec<(String, String)>,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn role(&self) -> &str {
        self.attribute("role").unwrap_or("")
    }

    pub fn is(&self, tags: &[&str]) -> bool {
        tags.contains(&self.tag.as_str())
    }

    /// Whether class or id has one of these words; a phrase such as `related posts` is words in a row.
    pub fn named(&self, words: &[&str]) -> bool {
        !self.names.is_empty() && words.iter().any(|word| has_word(&self.names, word))
    }
}

fn has_word(names: &str, word: &str) -> bool {
    names.match_indices(word).any(|(at, _)| {
        let before = names.as_bytes().get(at.wrapping_sub(1)).is_none_or(|byte| *byte == b' ');
        let after = names.as_bytes().get(at + word.len()).is_none_or(|byte| *byte == b' ');
        before && after
    })
}

/// Longer texts are compared by their beginnings.
const LONGEST_PLAIN: usize = 10_000;

const KEPT_ATTRIBUTES: &[&str] = &[
    "alt",
    "aria-hidden",
    "aria-label",
    "class",
    "colspan",
    "content",
    "data-lang",
    "data-language",
    "data-src",
    "datetime",
    "dir",
    "hidden",
    "href",
    "id",
    "itemprop",
    "itemtype",
    "lang",
    "name",
    "property",
    "rel",
    "role",
    "rowspan",
    "src",
    "start",
    "style",
    "type",
];

impl Tree {
    pub fn parse(html: &str) -> Self {
        let document = Document::from(html);
        let mut nodes: Vec<Node> = Vec::new();
        // What is left to visit: a node and its parent's place, or a place whose subtree ends here.
        let root = document.root().first_element_child();
        let mut left: Vec<Step> = root.iter().map(|root| Step::Enter(root.id, 0)).collect();
        while let Some(step) = left.pop() {
            let (id, parent) = match step {
                Step::Leave(at) => {
                    let end = nodes.len();
                    if let Some(node) = nodes.get_mut(at) {
                        node.end = end;
                    }
                    continue;
                }
                Step::Enter(id, parent) => (id, parent),
            };
            let data = document.tree.query_node(&id, |node| data_of(&node.data)).flatten();
            let Some(data) = data else { continue };
            let at = nodes.len();
            let is_element = matches!(data, Data::Element(_));
            nodes.push(Node { parent, end: at + 1, data });
            if is_element {
                left.push(Step::Leave(at));
                left.extend(document.tree.child_ids_of_it(&id, true).map(|child| Step::Enter(child, at)));
            }
        }
        Self { nodes }
    }

    pub fn element(&self, at: usize) -> Option<&Element> {
        match &self.nodes.get(at)?.data {
            Data::Element(element) => Some(element),
            Data::Text(_) => None,
        }
    }

    pub fn text(&self, at: usize) -> Option<&str> {
        match &self.nodes.get(at)?.data {
            Data::Text(text) => Some(text),
            Data::Element(_) => None,
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

    /// The places of all elements, in reading order.
    pub fn elements(&self) -> impl Iterator<Item = (usize, &Element)> {
        self.nodes.iter().enumerate().filter_map(|(at, node)| match &node.data {
            Data::Element(element) => Some((at, element)),
            Data::Text(_) => None,
        })
    }

    pub fn first(&self, tag: &str) -> Option<usize> {
        self.elements().find(|(_, element)| element.tag == tag).map(|(at, _)| at)
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

    /// The text beneath, with single spaces; a long one is cut.
    pub fn plain(&self, at: usize) -> String {
        let mut text = String::new();
        for word in self.range(at).filter_map(|at| self.text(at)).flat_map(str::split_whitespace) {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(word);
            if text.len() > LONGEST_PLAIN {
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

fn data_of(data: &NodeData) -> Option<Data> {
    match data {
        NodeData::Text { contents } => Some(Data::Text(contents.to_string())),
        NodeData::Element(element) => {
            let attributes: Vec<(String, String)> = element
                .attrs
                .iter()
                .filter(|attribute| KEPT_ATTRIBUTES.contains(&attribute.name.local.as_ref()))
                .map(|attribute| (attribute.name.local.to_string(), attribute.value.to_string()))
                .collect();
            let mut names = String::new();
            for (_, value) in attributes.iter().filter(|(name, _)| name == "class" || name == "id") {
                words(value, &mut names);
            }
            let names = without_hints(&names);
            Some(Data::Element(Element { tag: element.name.local.to_string(), names, attributes }))
        }
        _ => None,
    }
}

/// `relatedPosts my-2 side_bar` becomes ` related posts my 2 side bar `.
fn words(value: &str, names: &mut String) {
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

/// `has sidebar` says that a sidebar is elsewhere.
fn without_hints(names: &str) -> String {
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
