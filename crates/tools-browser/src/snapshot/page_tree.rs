//! Merges the accessibility trees of a page into one trimmed tree.

use super::LayoutView;
use super::roles::{self, RoleKind};
use crate::engine::{AxNode, FrameTree, Node};
use crate::sanitize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Maximum depth; deeper nodes are dropped, since a page can nest without limit.
const MAX_DEPTH: usize = 300;
/// Maximum text length of a clickable element without a role.
const MAX_LABEL_CHARS: usize = 100;
/// Maximum characters of the URL shown for a link without a name.
const MAX_LINK_ADDRESS_CHARS: usize = 40;

/// Role of a file input, which browsers call a button.
pub const FILE_FIELD_ROLE: &str = "file field";
/// Role of an element that is draggable and has no other role.
const DRAGGABLE_ROLE: &str = "draggable";

/// An element of the page that is shown on a line or as part of one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PageItem {
    /// None for items without an element.
    pub node: Option<Node>,
    pub role: String,
    pub name: String,
    pub states: Vec<String>,
    /// Target of a link.
    pub url: Option<String>,
    pub visible: bool,
    /// Whether it can be acted on.
    pub actionable: bool,
    /// Options of a field.
    pub options: Vec<String>,
    pub children: Vec<PageItem>,
}

#[derive(Debug, Clone, Default)]
pub struct PageTree {
    pub items: Vec<PageItem>,
}

impl PageTree {
    pub fn from_frames(frames: &[FrameTree], view: &LayoutView) -> Self {
        let mut inner: HashMap<&Node, Vec<&FrameTree>> = HashMap::new();
        for frame in frames {
            if let Some(owner) = &frame.owner {
                inner.entry(owner).or_default().push(frame);
            }
        }
        let Some(main) = frames.first() else { return Self::default() };
        let build = TreeBuilder { view, inner };
        Self { items: build.frame(main, 0, None) }
    }

    /// Visits all items, parents first.
    pub fn walk<'a>(&'a self, look: &mut dyn FnMut(&'a PageItem)) {
        fn each<'a>(items: &'a [PageItem], look: &mut dyn FnMut(&'a PageItem)) {
            for item in items {
                look(item);
                each(&item.children, look);
            }
        }
        each(&self.items, look);
    }

    /// Text beside an element: in the row or entry that contains it, or before it.
    pub fn surrounding_text(&self, node: &Node) -> Option<String> {
        /// None if the node is not found, Some(None) if there is no text beside it.
        fn within(items: &[PageItem], node: &Node, is_entry: bool) -> Option<Option<String>> {
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
                        true => all_text(&[before, rest.get(1..)?].concat()),
                        false => before
                            .last()
                            .filter(|before| !has_actionable(before))
                            .map(|one| all_text(std::slice::from_ref(one)))?,
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

    pub fn find(&self, node: &Node) -> Option<&PageItem> {
        let mut found = None;
        self.walk(&mut |item| {
            if found.is_none() && item.node.as_ref() == Some(node) {
                found = Some(item);
            }
        });
        found
    }
}

struct TreeBuilder<'a> {
    view: &'a LayoutView,
    inner: HashMap<&'a Node, Vec<&'a FrameTree>>,
}

/// Nodes of a frame by id.
struct FrameNodes<'a> {
    session: &'a Arc<str>,
    by_id: HashMap<&'a str, &'a AxNode>,
    /// For a frame in another process: whether the element that contains it is visible.
    visible: Option<bool>,
}

impl TreeBuilder<'_> {
    fn frame(&self, tree: &FrameTree, depth: usize, shown: Option<bool>) -> Vec<PageItem> {
        let at: HashMap<&str, &AxNode> = tree.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let root =
            tree.nodes.iter().find(|node| node.parent.as_deref().is_none_or(|id| !at.contains_key(id)));
        let Some(root) = root else { return Vec::new() };
        let frame = FrameNodes { session: &tree.session, by_id: at, visible: shown };
        let mut items = Vec::new();
        self.children(&frame, root, depth, &mut items);
        join_texts(items)
    }

    fn children(&self, frame: &FrameNodes, ax: &AxNode, depth: usize, out: &mut Vec<PageItem>) {
        if depth >= MAX_DEPTH {
            return;
        }
        for id in &ax.children {
            if let Some(child) = frame.by_id.get(id.as_str()) {
                self.node(frame, child, depth + 1, out);
            }
        }
    }

    fn node(&self, frame: &FrameNodes, ax: &AxNode, depth: usize, out: &mut Vec<PageItem>) {
        let part = if ax.ignored { RoleKind::Wrapper } else { roles::role_kind(&ax.role) };
        if self.contains_node(&self.view.file_inputs, frame, ax) {
            return out.push(self.file_field(frame, ax));
        }
        if matches!(part, RoleKind::Wrapper | RoleKind::Line | RoleKind::Container | RoleKind::Figure)
            && self.contains_node(&self.view.draggable, frame, ax)
        {
            return self.draggable(frame, ax, depth, out);
        }
        match part {
            RoleKind::Skip => {}
            RoleKind::Text => {
                let name = sanitize::single_line(&ax.name);
                if !name.is_empty() {
                    out.push(PageItem { role: "text".to_owned(), name, ..self.bare_item(frame, ax) });
                }
            }
            RoleKind::Figure => out.extend(Some(self.item(frame, ax)).filter(|item| !item.name.is_empty())),
            RoleKind::Wrapper => self.wrapper(frame, ax, depth, out),
            RoleKind::Control => self.control(frame, ax, depth, out),
            RoleKind::Field => out.push(self.field(frame, ax)),
            RoleKind::Container | RoleKind::Line => self.container(frame, ax, depth, out, part),
        }
    }

    fn contains_node(&self, set: &HashSet<Node>, frame: &FrameNodes, ax: &AxNode) -> bool {
        let node = ax.backend.filter(|_| !set.is_empty());
        node.is_some_and(|id| set.contains(&Node { session: Arc::clone(frame.session), id }))
    }

    fn file_field(&self, frame: &FrameNodes, ax: &AxNode) -> PageItem {
        let mut item = self.item(frame, ax);
        (item.role, item.actionable) = (FILE_FIELD_ROLE.to_owned(), true);
        let value = sanitize::single_line(ax.value.as_deref().unwrap_or_default());
        if !value.is_empty() {
            item.states.insert(0, quoted("value", &sanitize::truncate(&value, 120)));
        }
        item
    }

    /// A draggable element gets a ref, with its content as its name, or around the actionable elements in it.
    fn draggable(&self, frame: &FrameNodes, ax: &AxNode, depth: usize, out: &mut Vec<PageItem>) {
        let mut within = Vec::new();
        self.children(frame, ax, depth, &mut within);
        let within = join_texts(within);
        let bare = self.bare_item(frame, ax);
        let shown = bare.visible || within.iter().any(|inner| inner.visible);
        let name = match within.iter().any(has_actionable) {
            false => sanitize::truncate(&all_text(&within), MAX_LABEL_CHARS),
            true => sanitize::truncate(&sanitize::single_line(&ax.name), MAX_LABEL_CHARS),
        };
        let children = if within.iter().any(has_actionable) { within } else { Vec::new() };
        out.push(PageItem {
            role: DRAGGABLE_ROLE.to_owned(),
            name,
            visible: shown,
            actionable: true,
            children,
            ..bare
        });
    }

    fn wrapper(&self, frame: &FrameNodes, ax: &AxNode, depth: usize, out: &mut Vec<PageItem>) {
        let mut within = Vec::new();
        self.children(frame, ax, depth, &mut within);
        let bare = self.bare_item(frame, ax);
        let editable = property(ax, "editable").is_some() && is_true(ax, "focusable") && !ax.ignored;
        if editable {
            let value = all_text(&within);
            out.push(PageItem {
                role: "textbox".to_owned(),
                actionable: true,
                states: vec![quoted("value", &value)],
                ..bare
            });
            return;
        }
        let clickable = bare.node.as_ref().is_some_and(|node| self.view.clickable.contains(node));
        let names = all_text(&within);
        let is_label = !names.is_empty()
            && names.chars().count() <= MAX_LABEL_CHARS
            && !within.iter().any(has_actionable);
        if (clickable || is_true(ax, "focusable")) && is_label {
            out.push(PageItem { role: "clickable".to_owned(), name: names, actionable: true, ..bare });
            return;
        }
        out.append(&mut within);
    }

    fn control(&self, frame: &FrameNodes, ax: &AxNode, depth: usize, out: &mut Vec<PageItem>) {
        let mut within = Vec::new();
        self.children(frame, ax, depth, &mut within);
        let mut item = self.item(frame, ax);
        if item.name.is_empty() {
            item.name = sanitize::truncate(&all_text(&within), MAX_LABEL_CHARS);
        }
        if let (true, Some(url)) = (item.name.is_empty(), &item.url) {
            item.states.push(format!("to {}", sanitize::truncate(url_path(url), MAX_LINK_ADDRESS_CHARS)));
        }
        item.actionable = true;
        if ax.role == "treeitem" {
            item.children = join_texts(within).into_iter().filter(|inner| inner.name != item.name).collect();
            out.push(item);
            return;
        }
        out.push(item);
        // Actionable elements within it get their own line.
        out.extend(within.into_iter().filter(has_actionable));
    }

    fn field(&self, frame: &FrameNodes, ax: &AxNode) -> PageItem {
        let mut item = self.item(frame, ax);
        item.actionable = true;
        let value = sanitize::single_line(ax.value.as_deref().unwrap_or_default());
        let mut options = Vec::new();
        self.options(frame, ax, 0, &mut options);
        if !value.is_empty() {
            item.states.insert(0, quoted("value", &sanitize::truncate(&value, 120)));
        }
        item.options = options;
        item
    }

    /// Options of a list are in a popup without a node.
    fn options(&self, frame: &FrameNodes, ax: &AxNode, depth: usize, out: &mut Vec<String>) {
        for child in ax.children.iter().filter_map(|id| frame.by_id.get(id.as_str())) {
            if child.role == "option" && !child.ignored {
                out.push(sanitize::single_line(&child.name));
            } else if depth < MAX_DEPTH {
                self.options(frame, child, depth + 1, out);
            }
        }
    }

    fn container(
        &self,
        frame: &FrameNodes,
        ax: &AxNode,
        depth: usize,
        out: &mut Vec<PageItem>,
        part: RoleKind,
    ) {
        let mut item = self.item(frame, ax);
        let mut within = Vec::new();
        self.children(frame, ax, depth, &mut within);
        if ax.role == "Iframe" {
            let trees = item.node.as_ref().and_then(|node| self.inner.get(node)).into_iter().flatten();
            for tree in trees.filter(|_| depth < MAX_DEPTH) {
                let elsewhere = tree.session != *frame.session;
                within.extend(self.frame(tree, depth + 1, elsewhere.then_some(item.visible)));
            }
        }
        let mut within = join_texts(within);
        if !within.is_empty() {
            item.visible = within.iter().any(|inner| inner.visible);
        }
        item.actionable = ax.role == "listbox";
        if part == RoleKind::Line {
            // Its name comes from its content, which is shown.
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

    /// The item without name and states.
    fn bare_item(&self, frame: &FrameNodes, ax: &AxNode) -> PageItem {
        let node = ax.backend.map(|id| Node { session: Arc::clone(frame.session), id });
        let shown = frame
            .visible
            .unwrap_or_else(|| node.as_ref().is_some_and(|node| self.view.visible.contains(node)));
        PageItem { node, visible: shown, ..PageItem::default() }
    }

    fn item(&self, frame: &FrameNodes, ax: &AxNode) -> PageItem {
        let mut role = roles::display_role(&ax.role).to_owned();
        if let (true, Some(level)) = (role == "heading", property(ax, "level").and_then(Value::as_i64)) {
            role = format!("h{level}");
        }
        let url = property(ax, "url").and_then(Value::as_str).map(sanitize::single_line);
        PageItem {
            role,
            name: sanitize::single_line(&ax.name),
            states: states(ax),
            url,
            ..self.bare_item(frame, ax)
        }
    }
}

fn property<'a>(ax: &'a AxNode, name: &str) -> Option<&'a Value> {
    ax.properties.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn is_true(ax: &AxNode, name: &str) -> bool {
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
        if is_true(ax, word) {
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
    let description = sanitize::single_line(ax.description.as_deref().unwrap_or_default());
    if !description.is_empty() && !is_redundant(&description, &sanitize::single_line(&ax.name)) {
        states.push(sanitize::truncate(&description, 80));
    }
    states
}

/// Whether a description adds hardly anything to the name, as the title of a link often does.
pub(super) fn is_redundant(description: &str, name: &str) -> bool {
    let cut_by_page = name.ends_with('…') || name.ends_with("...");
    let stem = name.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    name.contains(description)
        || !cut_by_page && description.starts_with(stem) && stem.len() * 2 > description.len()
}

/// Path of a URL on its host.
fn url_path(url: &str) -> &str {
    let path = url.split_once("://").and_then(|(_, rest)| rest.find('/').and_then(|at| rest.get(at..)));
    path.filter(|path| path.len() > 1).unwrap_or(url)
}

pub fn has_actionable(item: &PageItem) -> bool {
    item.actionable || item.children.iter().any(has_actionable)
}

/// All text in some items.
pub fn all_text(items: &[PageItem]) -> String {
    fn add(items: &[PageItem], text: &mut String) {
        for item in items {
            append_words(text, &item.name);
            add(&item.children, text);
        }
    }
    let mut text = String::new();
    add(items, &mut text);
    text
}

/// Appends words with a space, punctuation without.
pub fn append_words(text: &mut String, more: &str) {
    let mark = more.starts_with(['.', ',', ';', ':', '!', '?', ')']);
    if !text.is_empty() && !more.is_empty() && !mark && !text.ends_with('(') {
        text.push(' ');
    }
    text.push_str(more);
}

fn is_text_item(item: &PageItem) -> bool {
    item.children.is_empty() && matches!(item.role.as_str(), "text" | "label")
}

/// Joins adjacent texts and drops texts that only repeat their neighbour's name.
fn join_texts(items: Vec<PageItem>) -> Vec<PageItem> {
    let mut joined: Vec<PageItem> = Vec::with_capacity(items.len());
    for item in items {
        match joined.last_mut() {
            Some(last) if last.role == "text" && item.role == "text" => {
                append_words(&mut last.name, &item.name);
                last.visible |= item.visible;
            }
            Some(last) if is_text_item(&item) && last.actionable && last.name == item.name => {}
            Some(last) if is_text_item(last) && item.actionable && last.name == item.name => *last = item,
            _ => joined.push(item),
        }
    }
    joined
}
