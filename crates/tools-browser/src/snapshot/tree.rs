//! The accessibility trees of a page as one trimmed tree.

use super::View;
use super::roles::{self, Part};
use crate::clean;
use crate::engine::{AxNode, FrameTree, Node};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Nodes within nodes; what lies deeper is left out, since nobody reads it and a page can nest without end.
const DEEPEST: usize = 300;
/// Letters of a text that make an element without a role worth clicking.
const LABEL: usize = 100;
/// Letters of the address of a link that says nothing.
const ADDRESS: usize = 40;

/// The role of a field that takes files, which browsers call a button.
pub const FILE_FIELD: &str = "file field";
/// The role of what can be dragged and is nothing else.
const DRAGGABLE: &str = "draggable";

/// Something on the page that is worth a line, or a part of one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Item {
    /// None for what has no element.
    pub node: Option<Node>,
    pub role: String,
    pub name: String,
    pub states: Vec<String>,
    /// Where a link leads.
    pub url: Option<String>,
    pub shown: bool,
    /// Whether it can be acted on.
    pub acts: bool,
    /// What a field can be set to.
    pub options: Vec<String>,
    pub children: Vec<Item>,
}

#[derive(Debug, Clone, Default)]
pub struct Tree {
    pub items: Vec<Item>,
}

impl Tree {
    pub fn of(frames: &[FrameTree], view: &View) -> Self {
        let mut inner: HashMap<&Node, Vec<&FrameTree>> = HashMap::new();
        for frame in frames {
            if let Some(owner) = &frame.owner {
                inner.entry(owner).or_default().push(frame);
            }
        }
        let Some(main) = frames.first() else { return Self::default() };
        let build = Build { view, inner };
        Self { items: build.frame(main, 0, None) }
    }

    /// Walks over all items, parents first.
    pub fn walk<'a>(&'a self, look: &mut dyn FnMut(&'a Item)) {
        fn each<'a>(items: &'a [Item], look: &mut dyn FnMut(&'a Item)) {
            for item in items {
                look(item);
                each(&item.children, look);
            }
        }
        each(&self.items, look);
    }

    /// What is written beside an element: in the row or entry that holds it, or before it.
    pub fn context(&self, node: &Node) -> Option<String> {
        /// None when it is not there, and nothing inside when nothing is written beside it.
        fn within(items: &[Item], node: &Node, is_entry: bool) -> Option<Option<String>> {
            for (at, item) in items.iter().enumerate() {
                let found = match item.node.as_ref() == Some(node) {
                    true => None,
                    false => match within(&item.children, node, is_entry_role(&item.role)) {
                        Some(found) => found,
                        None => continue,
                    },
                };
                return Some(found.or_else(|| {
                    let (before, rest) = items.split_at_checked(at)?;
                    let words = match is_entry {
                        true => said(&[before, rest.get(1..)?].concat()),
                        false => before
                            .last()
                            .filter(|before| !has_actor(before))
                            .map(|one| said(std::slice::from_ref(one)))?,
                    };
                    Some(words).filter(|words| !words.is_empty())
                }));
            }
            None
        }
        fn is_entry_role(role: &str) -> bool {
            matches!(role, "row" | "listitem" | "article" | "draggable")
        }
        within(&self.items, node, false).flatten()
    }

    pub fn find(&self, node: &Node) -> Option<&Item> {
        let mut found = None;
        self.walk(&mut |item| {
            if found.is_none() && item.node.as_ref() == Some(node) {
                found = Some(item);
            }
        });
        found
    }
}

struct Build<'a> {
    view: &'a View,
    inner: HashMap<&'a Node, Vec<&'a FrameTree>>,
}

/// One frame's nodes by id.
struct Frame<'a> {
    session: &'a Arc<str>,
    at: HashMap<&'a str, &'a AxNode>,
    /// For a frame in another process: whether the element that holds it is shown.
    shown: Option<bool>,
}

impl Build<'_> {
    fn frame(&self, tree: &FrameTree, depth: usize, shown: Option<bool>) -> Vec<Item> {
        let at: HashMap<&str, &AxNode> = tree.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let root =
            tree.nodes.iter().find(|node| node.parent.as_deref().is_none_or(|id| !at.contains_key(id)));
        let Some(root) = root else { return Vec::new() };
        let frame = Frame { session: &tree.session, at, shown };
        let mut items = Vec::new();
        self.children(&frame, root, depth, &mut items);
        join_texts(items)
    }

    fn children(&self, frame: &Frame, ax: &AxNode, depth: usize, out: &mut Vec<Item>) {
        if depth >= DEEPEST {
            return;
        }
        for id in &ax.children {
            if let Some(child) = frame.at.get(id.as_str()) {
                self.node(frame, child, depth + 1, out);
            }
        }
    }

    fn node(&self, frame: &Frame, ax: &AxNode, depth: usize, out: &mut Vec<Item>) {
        let part = if ax.ignored { Part::Wrapper } else { roles::part(&ax.role) };
        if self.holds(&self.view.files, frame, ax) {
            return out.push(self.file_field(frame, ax));
        }
        if matches!(part, Part::Wrapper | Part::Line | Part::Holder | Part::Figure)
            && self.holds(&self.view.draggable, frame, ax)
        {
            return self.draggable(frame, ax, depth, out);
        }
        match part {
            Part::Nothing => {}
            Part::Text => {
                let name = clean::line(&ax.name);
                if !name.is_empty() {
                    out.push(Item { role: "text".to_owned(), name, ..self.bare(frame, ax) });
                }
            }
            Part::Figure => out.extend(Some(self.item(frame, ax)).filter(|item| !item.name.is_empty())),
            Part::Wrapper => self.wrapper(frame, ax, depth, out),
            Part::Actor => self.actor(frame, ax, depth, out),
            Part::Field => out.push(self.field(frame, ax)),
            Part::Holder | Part::Line => self.holder(frame, ax, depth, out, part),
        }
    }

    fn holds(&self, set: &HashSet<Node>, frame: &Frame, ax: &AxNode) -> bool {
        let node = ax.backend.filter(|_| !set.is_empty());
        node.is_some_and(|id| set.contains(&Node { session: Arc::clone(frame.session), id }))
    }

    fn file_field(&self, frame: &Frame, ax: &AxNode) -> Item {
        let mut item = self.item(frame, ax);
        (item.role, item.acts) = (FILE_FIELD.to_owned(), true);
        let value = clean::line(ax.value.as_deref().unwrap_or_default());
        if !value.is_empty() {
            item.states.insert(0, quoted("value", &clean::cut(&value, 120)));
        }
        item
    }

    /// What can be dragged has a ref, with what is in it as its name, or around what can be acted on in it.
    fn draggable(&self, frame: &Frame, ax: &AxNode, depth: usize, out: &mut Vec<Item>) {
        let mut within = Vec::new();
        self.children(frame, ax, depth, &mut within);
        let within = join_texts(within);
        let bare = self.bare(frame, ax);
        let shown = bare.shown || within.iter().any(|inner| inner.shown);
        let name = match within.iter().any(has_actor) {
            false => clean::cut(&said(&within), LABEL),
            true => clean::cut(&clean::line(&ax.name), LABEL),
        };
        let children = if within.iter().any(has_actor) { within } else { Vec::new() };
        out.push(Item { role: DRAGGABLE.to_owned(), name, shown, acts: true, children, ..bare });
    }

    fn wrapper(&self, frame: &Frame, ax: &AxNode, depth: usize, out: &mut Vec<Item>) {
        let mut within = Vec::new();
        self.children(frame, ax, depth, &mut within);
        let bare = self.bare(frame, ax);
        let editable = property(ax, "editable").is_some() && is(ax, "focusable") && !ax.ignored;
        if editable {
            let value = said(&within);
            out.push(Item {
                role: "textbox".to_owned(),
                acts: true,
                states: vec![quoted("value", &value)],
                ..bare
            });
            return;
        }
        let clickable = bare.node.as_ref().is_some_and(|node| self.view.clickable.contains(node));
        let names = said(&within);
        let is_label = !names.is_empty() && names.chars().count() <= LABEL && !within.iter().any(has_actor);
        if (clickable || is(ax, "focusable")) && is_label {
            out.push(Item { role: "clickable".to_owned(), name: names, acts: true, ..bare });
            return;
        }
        out.append(&mut within);
    }

    fn actor(&self, frame: &Frame, ax: &AxNode, depth: usize, out: &mut Vec<Item>) {
        let mut within = Vec::new();
        self.children(frame, ax, depth, &mut within);
        let mut item = self.item(frame, ax);
        if item.name.is_empty() {
            item.name = clean::cut(&said(&within), LABEL);
        }
        if let (true, Some(url)) = (item.name.is_empty(), &item.url) {
            item.states.push(format!("to {}", clean::cut(place(url), ADDRESS)));
        }
        item.acts = true;
        if ax.role == "treeitem" {
            item.children = join_texts(within).into_iter().filter(|inner| inner.name != item.name).collect();
            out.push(item);
            return;
        }
        out.push(item);
        // What can be acted on within it is worth a line of its own.
        out.extend(within.into_iter().filter(has_actor));
    }

    fn field(&self, frame: &Frame, ax: &AxNode) -> Item {
        let mut item = self.item(frame, ax);
        item.acts = true;
        let value = clean::line(ax.value.as_deref().unwrap_or_default());
        let mut options = Vec::new();
        self.options(frame, ax, 0, &mut options);
        if !value.is_empty() {
            item.states.insert(0, quoted("value", &clean::cut(&value, 120)));
        }
        item.options = options;
        item
    }

    /// The options of a list lie in a popup that is no node of its own.
    fn options(&self, frame: &Frame, ax: &AxNode, depth: usize, out: &mut Vec<String>) {
        for child in ax.children.iter().filter_map(|id| frame.at.get(id.as_str())) {
            if child.role == "option" && !child.ignored {
                out.push(clean::line(&child.name));
            } else if depth < DEEPEST {
                self.options(frame, child, depth + 1, out);
            }
        }
    }

    fn holder(&self, frame: &Frame, ax: &AxNode, depth: usize, out: &mut Vec<Item>, part: Part) {
        let mut item = self.item(frame, ax);
        let mut within = Vec::new();
        self.children(frame, ax, depth, &mut within);
        if ax.role == "Iframe" {
            let trees = item.node.as_ref().and_then(|node| self.inner.get(node)).into_iter().flatten();
            for tree in trees.filter(|_| depth < DEEPEST) {
                let elsewhere = tree.session != *frame.session;
                within.extend(self.frame(tree, depth + 1, elsewhere.then_some(item.shown)));
            }
        }
        let mut within = join_texts(within);
        if !within.is_empty() {
            item.shown = within.iter().any(|inner| inner.shown);
        }
        item.acts = ax.role == "listbox";
        if part == Part::Line {
            // Named by its contents, which are here.
            if !within.is_empty() {
                item.name.clear();
            }
            if let [only] = within.as_slice()
                && only.role == "text"
            {
                item.name = only.name.clone();
                within.clear();
            }
            if matches!(ax.role.as_str(), "paragraph" | "LabelText" | "listitem") && within.len() == 1 {
                out.append(&mut within);
                return;
            }
            if item.name.is_empty() && within.is_empty() && !matches!(ax.role.as_str(), "cell" | "gridcell") {
                return;
            }
        } else {
            if within.is_empty() && item.name.is_empty() {
                return;
            }
            let plain = item.name.is_empty()
                && (roles::needs_name(&ax.role) && ax.role != "list" || within.len() == 1);
            if plain && !matches!(ax.role.as_str(), "dialog" | "alertdialog" | "alert" | "Iframe" | "main") {
                out.append(&mut within);
                return;
            }
        }
        item.children = within;
        out.push(item);
    }

    /// The element without anything that is said of it.
    fn bare(&self, frame: &Frame, ax: &AxNode) -> Item {
        let node = ax.backend.map(|id| Node { session: Arc::clone(frame.session), id });
        let shown =
            frame.shown.unwrap_or_else(|| node.as_ref().is_some_and(|node| self.view.shown.contains(node)));
        Item { node, shown, ..Item::default() }
    }

    fn item(&self, frame: &Frame, ax: &AxNode) -> Item {
        let mut role = roles::word(&ax.role).to_owned();
        if let (true, Some(level)) = (role == "heading", property(ax, "level").and_then(Value::as_i64)) {
            role = format!("h{level}");
        }
        let url = property(ax, "url").and_then(Value::as_str).map(clean::line);
        Item { role, name: clean::line(&ax.name), states: states(ax), url, ..self.bare(frame, ax) }
    }
}

fn property<'a>(ax: &'a AxNode, name: &str) -> Option<&'a Value> {
    ax.properties.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn is(ax: &AxNode, name: &str) -> bool {
    property(ax, name).is_some_and(|value| value == true || value == "true")
}

fn quoted(word: &str, text: &str) -> String {
    format!("{word}: {text:?}")
}

fn states(ax: &AxNode) -> Vec<String> {
    let mut states = Vec::new();
    match property(ax, "checked").and_then(Value::as_str) {
        Some("true") => states.push("checked".to_owned()),
        Some("mixed") => states.push("partly checked".to_owned()),
        _ => {}
    }
    for word in ["selected", "pressed", "disabled", "required", "readonly", "focused", "busy", "modal"] {
        if is(ax, word) {
            states.push(word.to_owned());
        }
    }
    match property(ax, "expanded") {
        Some(expanded) if expanded == true || expanded == "true" => states.push("expanded".to_owned()),
        Some(_) => states.push("collapsed".to_owned()),
        None => {}
    }
    if property(ax, "invalid").and_then(Value::as_str).is_some_and(|invalid| invalid != "false") {
        states.push("invalid".to_owned());
    }
    let description = clean::line(ax.description.as_deref().unwrap_or_default());
    if !description.is_empty() && !repeats(&description, &clean::line(&ax.name)) {
        states.push(clean::cut(&description, 80));
    }
    states
}

/// Whether a description says hardly more than the name, as the title of a link often does.
pub(super) fn repeats(description: &str, name: &str) -> bool {
    let cut_by_page = name.ends_with('…') || name.ends_with("...");
    let stem = name.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    name.contains(description)
        || !cut_by_page && description.starts_with(stem) && stem.len() * 2 > description.len()
}

/// What an address leads to on its host.
fn place(url: &str) -> &str {
    let path = url.split_once("://").and_then(|(_, rest)| rest.find('/').and_then(|at| rest.get(at..)));
    path.filter(|path| path.len() > 1).unwrap_or(url)
}

pub fn has_actor(item: &Item) -> bool {
    item.acts || item.children.iter().any(has_actor)
}

/// All that is written in some items.
pub fn said(items: &[Item]) -> String {
    fn add(items: &[Item], text: &mut String) {
        for item in items {
            glue(text, &item.name);
            add(&item.children, text);
        }
    }
    let mut text = String::new();
    add(items, &mut text);
    text
}

/// A text goes on: words apart, marks without a space.
pub fn glue(text: &mut String, more: &str) {
    let mark = more.starts_with(['.', ',', ';', ':', '!', '?', ')']);
    if !text.is_empty() && !more.is_empty() && !mark && !text.ends_with('(') {
        text.push(' ');
    }
    text.push_str(more);
}

fn is_words(item: &Item) -> bool {
    item.children.is_empty() && matches!(item.role.as_str(), "text" | "label")
}

/// Texts that follow each other are one; a text that only repeats its neighbour's name is none.
fn join_texts(items: Vec<Item>) -> Vec<Item> {
    let mut joined: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        match joined.last_mut() {
            Some(last) if last.role == "text" && item.role == "text" => {
                glue(&mut last.name, &item.name);
                last.shown |= item.shown;
            }
            Some(last) if is_words(&item) && last.acts && last.name == item.name => {}
            Some(last) if is_words(last) && item.acts && last.name == item.name => *last = item,
            _ => joined.push(item),
        }
    }
    joined
}
