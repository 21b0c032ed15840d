//! Renders the trimmed tree within a budget: the viewport first, then the rest as far as it fits, then counts.

use super::CHARS_PER_TOKEN;
use super::element_refs::Refs;
use super::item_line::{LineStyle, RefNamer, format_line, is_heading, is_line, is_separator};
use super::page_tree::{PageItem, PageTree};
use std::collections::BTreeMap;
use std::sync::Arc;

/// From generous to tight; the first one whose viewport leaves room for the rest is used.
const STYLES: [LineStyle; 4] = [
    LineStyle::WIDE,
    LineStyle { max_text: 140, max_name: 80, max_options: 6, max_alike: 5 },
    LineStyle { max_text: 80, max_name: 60, max_options: 3, max_alike: 3 },
    TIGHT,
];
const TIGHT: LineStyle = LineStyle { max_text: 40, max_name: 40, max_options: 1, max_alike: 2 };
/// Characters that the viewport may take regardless of the budget, so that all of it can be acted on.
const MAX_VIEWPORT_CHARS: usize = 24_000;
/// Minimum budget in characters for showing the beginning of an item.
const MIN_PARTIAL_CHARS: usize = 400;
/// Maximum characters of an element that shares its line with the next, and of such a line.
const MAX_SHORT_ITEM_CHARS: usize = 60;
const MAX_LINE_CHARS: usize = 100;

/// Rendering options.
#[derive(Debug, Clone, Copy)]
pub struct RenderOptions<'a> {
    /// In tokens; None for everything.
    pub budget: Option<usize>,
    /// Only the content of this item.
    pub part: Option<&'a PageItem>,
    /// Number of children (of the item or the page) to skip.
    pub from: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedSnapshot {
    pub text: String,
    /// Whether something was omitted or shortened.
    pub truncated: bool,
    /// Number of folded entries and of shortened texts.
    pub folded: usize,
    pub shortened: usize,
}

impl RenderedSnapshot {
    /// What was omitted, and how to see it.
    pub fn note(&self) -> Option<String> {
        let count = |many: usize, one: &str, more: &str| match many {
            0 => None,
            1 => Some(format!("1 {one}")),
            many => Some(format!("{many} {more}")),
        };
        let folded = count(self.folded, "entry is folded", "entries are folded");
        let shortened = count(self.shortened, "text is shortened", "texts are shortened");
        let both: Vec<String> = folded.into_iter().chain(shortened).collect();
        (!both.is_empty()).then(|| format!("{}: see …", both.join(", ")))
    }
}

pub fn render(tree: &PageTree, ask: RenderOptions, refs: &mut Refs, document: &Arc<str>) -> RenderedSnapshot {
    let Some(budget) = ask.budget.map(|tokens| tokens * CHARS_PER_TOKEN) else {
        let mut writer = SnapshotWriter::new(LineStyle::FULL, refs, document);
        writer.compact = false;
        writer.write_tree(tree, ask, true);
        return writer.finish();
    };
    let mark = refs.checkpoint();
    let mut style = TIGHT;
    let mut remaining = 0;
    for try_style in STYLES {
        let mut writer = SnapshotWriter::new(try_style, refs, document);
        writer.write_tree(tree, ask, false);
        let used = writer.used;
        refs.rollback(mark);
        if used <= budget * 3 / 4 {
            (style, remaining) = (try_style, budget - used);
            break;
        }
    }
    let mut writer = SnapshotWriter::new(style, refs, document);
    writer.remaining = remaining;
    writer.limit = budget.max(MAX_VIEWPORT_CHARS);
    writer.write_tree(tree, ask, false);
    writer.finish()
}

/// A line, or a part of one.
struct Piece {
    text: String,
    depth: usize,
    /// Whether it is short and may share a line with its neighbours.
    short: bool,
    /// Whether it continues the line of the previous piece.
    follows: bool,
}

struct SnapshotWriter<'a> {
    style: LineStyle,
    namer: RefNamer<'a>,
    /// Whether short elements share lines.
    compact: bool,
    pieces: Vec<Piece>,
    used: usize,
    /// Characters left for what the viewport does not show.
    remaining: usize,
    limit: usize,
    truncated: bool,
    folded: usize,
    shortened: usize,
}

impl<'a> SnapshotWriter<'a> {
    fn new(style: LineStyle, refs: &'a mut Refs, document: &'a Arc<str>) -> Self {
        let namer = RefNamer { refs: Some(refs), document };
        Self {
            style,
            namer,
            compact: true,
            pieces: Vec::new(),
            used: 0,
            remaining: 0,
            limit: usize::MAX,
            truncated: false,
            folded: 0,
            shortened: 0,
        }
    }

    fn write_tree(&mut self, tree: &PageTree, ask: RenderOptions, whole: bool) {
        let (items, depth) = match ask.part {
            Some(part) => {
                let style = if is_line(part) { LineStyle::FULL } else { self.style };
                let text = format_line(part, style, &mut self.namer);
                self.push_piece(text, 0, false);
                let children = if is_line(part) { &[] } else { part.children.as_slice() };
                (children, 1)
            }
            None => (tree.items.as_slice(), 0),
        };
        let items = items.get(ask.from..).unwrap_or_default();
        match (whole, ask.part) {
            (true, _) => items.iter().for_each(|item| self.write_whole(item, depth)),
            // A part was requested explicitly, so it is rendered in order and not by viewport.
            (false, Some(part)) => self.write_in_order(items, depth, Some(part), ask.from),
            (false, None) => self.write_visible_first(items, depth, None, ask.from),
        }
    }

    fn finish(self) -> RenderedSnapshot {
        let mut text = String::with_capacity(self.used);
        for piece in &self.pieces {
            match piece.follows {
                true => text.push_str(", "),
                false => {
                    let end = if text.is_empty() { "" } else { "\n" };
                    text.push_str(&format!("{end}{:1$}- ", "", piece.depth * 2));
                }
            }
            text.push_str(&piece.text);
        }
        let Self { truncated, folded, shortened, .. } = self;
        RenderedSnapshot { text, truncated, folded, shortened }
    }

    /// Writes the line of an item, or its part of one.
    fn write_item(&mut self, item: &PageItem, depth: usize) {
        if is_separator(item) {
            return;
        }
        let text = format_line(item, self.style, &mut self.namer);
        let short =
            self.compact && item.actionable && item.children.is_empty() && text.len() <= MAX_SHORT_ITEM_CHARS;
        self.push_piece(text, depth, short);
    }

    fn push_piece(&mut self, text: String, depth: usize, short: bool) {
        if text.contains('…') {
            self.truncated = true;
            self.shortened += usize::from(!text.starts_with('…'));
        }
        let follows = short && self.has_room(text.len(), depth);
        self.used += text.len() + if follows { 2 } else { depth * 2 + 3 };
        self.pieces.push(Piece { text, depth, short, follows });
    }

    /// Whether the last line consists of short elements and has room for another one.
    fn has_room(&self, letters: usize, depth: usize) -> bool {
        if self.pieces.last().is_none_or(|last| !last.short || last.depth != depth) {
            return false;
        }
        let mut width = letters;
        for piece in self.pieces.iter().rev() {
            width += piece.text.len() + 2;
            if !piece.follows {
                break;
            }
        }
        width <= MAX_LINE_CHARS
    }

    /// Writes what the viewport shows, and the rest as far as it fits.
    fn write_visible_first(
        &mut self,
        items: &[PageItem],
        depth: usize,
        parent: Option<&PageItem>,
        from: usize,
    ) {
        let mut at = 0;
        while let Some(item) = items.get(at) {
            if self.used > self.limit {
                self.write_omitted(items.get(at..).unwrap_or_default(), depth, parent, from + at);
                return;
            }
            if item.visible {
                self.write_item(item, depth);
                if !is_line(item) {
                    self.write_visible_first(&item.children, depth + 1, Some(item), 0);
                }
                at += 1;
                continue;
            }
            let run = items.iter().skip(at).take_while(|item| !item.visible).count();
            self.write_hidden(items, at, at + run, depth, parent, from);
            at += run;
        }
    }

    /// Writes a range of items that the viewport does not show.
    fn write_hidden(
        &mut self,
        items: &[PageItem],
        at: usize,
        end: usize,
        depth: usize,
        parent: Option<&PageItem>,
        from: usize,
    ) {
        let mut next = at;
        while next < end
            && let Some(item) = items.get(next)
        {
            let before = items.get(..next).unwrap_or_default().iter().rev().take(self.style.max_alike);
            if before.take_while(|before| shape(before) == shape(item)).count() >= self.style.max_alike {
                let run =
                    items.iter().take(end).skip(next).take_while(|more| shape(more) == shape(item)).count();
                self.write_omitted(
                    items.get(next..next + run).unwrap_or_default(),
                    depth,
                    parent,
                    from + next,
                );
                next += run;
                continue;
            }
            if !self.try_write_whole(item, depth) {
                next += usize::from(self.write_partial(item, depth));
                self.write_omitted(items.get(next..end).unwrap_or_default(), depth, parent, from + next);
                return;
            }
            next += 1;
        }
    }

    /// Writes the beginning of an item that does not fit.
    fn write_partial(&mut self, item: &PageItem, depth: usize) -> bool {
        let begins = !is_line(item) && self.remaining > MIN_PARTIAL_CHARS;
        if begins {
            let used = self.used;
            self.write_item(item, depth);
            self.remaining = self.remaining.saturating_sub(self.used - used);
            self.write_in_order(&item.children, depth + 1, Some(item), 0);
        }
        begins
    }

    /// Writes items in order while they fit.
    fn write_in_order(&mut self, items: &[PageItem], depth: usize, parent: Option<&PageItem>, from: usize) {
        for (at, item) in items.iter().enumerate() {
            if self.try_write_whole(item, depth) {
                continue;
            }
            let next = at + usize::from(self.write_partial(item, depth));
            self.write_omitted(items.get(next..).unwrap_or_default(), depth, parent, from + next);
            return;
        }
    }

    /// Writes an item with its subtree if it fits, otherwise nothing.
    fn try_write_whole(&mut self, item: &PageItem, depth: usize) -> bool {
        let (pieces, used, truncated) = (self.pieces.len(), self.used, self.truncated);
        let counts = (self.folded, self.shortened);
        let mark = self.namer.refs.as_ref().map_or(0, |refs| refs.checkpoint());
        let limit = std::mem::replace(&mut self.limit, used + self.remaining);
        self.write_whole(item, depth);
        let fits = self.used <= self.limit;
        self.limit = limit;
        if fits {
            self.remaining -= self.used - used;
            return true;
        }
        self.pieces.truncate(pieces);
        (self.used, self.truncated) = (used, truncated);
        (self.folded, self.shortened) = counts;
        if let Some(refs) = self.namer.refs.as_mut() {
            refs.rollback(mark);
        }
        false
    }

    /// Writes an item with its subtree; only similar siblings are folded.
    fn write_whole(&mut self, item: &PageItem, depth: usize) {
        if self.used > self.limit {
            return;
        }
        self.write_item(item, depth);
        if is_line(item) {
            return;
        }
        let mut at = 0;
        while let Some(child) = item.children.get(at) {
            let rest = item.children.get(at..).unwrap_or_default();
            let run = rest.iter().take_while(|more| shape(more) == shape(child)).count();
            let keep = if run > self.style.max_alike.saturating_add(1) { self.style.max_alike } else { run };
            rest.iter().take(keep).for_each(|child| self.write_whole(child, depth + 1));
            if keep < run {
                self.write_omitted(rest.get(keep..run).unwrap_or_default(), depth + 1, Some(item), at + keep);
            }
            at += run;
        }
    }

    /// Writes how much is omitted, and the parameters to request it.
    fn write_omitted(&mut self, items: &[PageItem], depth: usize, parent: Option<&PageItem>, from: usize) {
        let Some(first) = items.first() else { return };
        self.truncated = true;
        self.folded += items.len();
        let alike = items.iter().all(|item| shape(item) == shape(first));
        let what = match (alike && items.len() > 1, count_by_kind(items)) {
            (true, _) => format!("{} more {}", items.len(), plural(&first.role)),
            (false, said) if said.is_empty() => format!("{} more", items.len()),
            (false, said) => said,
        };
        let part = parent.and_then(|parent| self.namer.name(parent));
        let part = part.map(|part| format!("part={part} ")).unwrap_or_default();
        self.push_piece(format!("… {what}: {part}from={from}"), depth, false);
    }
}

/// Shape of an item; items of the same shape are similar.
fn shape(item: &PageItem) -> (&str, usize, Option<&str>) {
    // The number of parts may differ slightly between the entries of a list.
    let first = item.children.first().map(|child| child.role.as_str());
    (item.role.as_str(), usize::from(!item.children.is_empty()), first)
}

fn plural(role: &str) -> String {
    match role {
        "text" | "paragraph" => "texts".to_owned(),
        "listitem" => "items".to_owned(),
        "checkbox" | "switch" | "textbox" | "searchbox" | "combobox" => {
            format!("{role}es").replace("boxs", "boxes")
        }
        role => format!("{role}s"),
    }
}

/// Counts items and their content by kind.
fn count_by_kind(items: &[PageItem]) -> String {
    fn add(items: &[PageItem], counts: &mut BTreeMap<usize, (usize, &'static str)>) {
        for item in items {
            let (order, word) = match item.role.as_str() {
                role if is_heading(role) => (0, "headings"),
                "link" => (1, "links"),
                "button" | "tab" | "menuitem" | "clickable" | "summary" => (2, "buttons"),
                _ if item.actionable => (3, "fields"),
                "row" => (4, "rows"),
                "text" | "paragraph" => (5, "texts"),
                _ => (6, ""),
            };
            counts.entry(order).or_insert((0, word)).0 += 1;
            add(&item.children, counts);
        }
    }
    let mut counts = BTreeMap::new();
    add(items, &mut counts);
    let said: Vec<String> = counts
        .into_values()
        .filter(|(_, word)| !word.is_empty())
        .map(|(many, word)| format!("{many} {}", if many == 1 { word.trim_end_matches('s') } else { word }))
        .collect();
    said.join(", ")
}
