//! The trimmed tree within a budget: what the viewport shows first, then the rest as far as there is room, then counts.

use super::LETTERS;
use super::line::{Namer, Style, is_heading, is_line, is_separator, line};
use super::refs::Refs;
use super::tree::{Item, Tree};
use std::collections::BTreeMap;
use std::sync::Arc;

/// From generous to tight; the first whose viewport leaves room for the rest is taken.
const STYLES: [Style; 4] = [
    Style::WIDE,
    Style { text: 140, name: 80, options: 6, keep: 5 },
    Style { text: 80, name: 60, options: 3, keep: 3 },
    TIGHT,
];
const TIGHT: Style = Style { text: 40, name: 40, options: 1, keep: 2 };
/// Letters that the viewport may take whatever the budget is, so that all of it can be acted on.
const VIEWPORT: usize = 24_000;
/// Letters that make the beginning of something worth showing.
const LEAST: usize = 400;
/// Letters of an element that shares its line with the next, and of such a line.
const SHORT: usize = 60;
const WIDTH: usize = 100;

/// What is wanted of a tree.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// In tokens; none for everything.
    pub budget: Option<usize>,
    /// Only what is in this item.
    pub part: Option<&'a Item>,
    /// Leaves out so many of its (or the page's) children.
    pub from: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    /// Whether something was left out or shortened.
    pub truncated: bool,
    /// Entries that are folded, and texts that are shortened.
    pub folded: usize,
    pub shortened: usize,
}

impl Rendered {
    /// What was left out, and how to see it.
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

pub fn render(tree: &Tree, ask: Ask, refs: &mut Refs, document: &Arc<str>) -> Rendered {
    let Some(budget) = ask.budget.map(|tokens| tokens * LETTERS) else {
        let mut pen = Pen::new(Style::WHOLE, refs, document);
        pen.dense = false;
        pen.start(tree, ask, true);
        return pen.done();
    };
    let mark = refs.mark();
    let mut style = TIGHT;
    let mut spare = 0;
    for try_style in STYLES {
        let mut pen = Pen::new(try_style, refs, document);
        pen.start(tree, ask, false);
        let used = pen.used;
        refs.forget_since(mark);
        if used <= budget * 3 / 4 {
            (style, spare) = (try_style, budget - used);
            break;
        }
    }
    let mut pen = Pen::new(style, refs, document);
    pen.spare = spare;
    pen.limit = budget.max(VIEWPORT);
    pen.start(tree, ask, false);
    pen.done()
}

/// A line, or a part of one.
struct Piece {
    text: String,
    depth: usize,
    /// Whether it is short and may share a line with its neighbours.
    short: bool,
    /// Whether it stands in the line of the piece before it.
    follows: bool,
}

struct Pen<'a> {
    style: Style,
    namer: Namer<'a>,
    /// Whether short elements share lines.
    dense: bool,
    pieces: Vec<Piece>,
    used: usize,
    /// Letters for what the viewport does not show.
    spare: usize,
    limit: usize,
    truncated: bool,
    folded: usize,
    shortened: usize,
}

impl<'a> Pen<'a> {
    fn new(style: Style, refs: &'a mut Refs, document: &'a Arc<str>) -> Self {
        let namer = Namer { refs: Some(refs), document };
        Self {
            style,
            namer,
            dense: true,
            pieces: Vec::new(),
            used: 0,
            spare: 0,
            limit: usize::MAX,
            truncated: false,
            folded: 0,
            shortened: 0,
        }
    }

    fn start(&mut self, tree: &Tree, ask: Ask, whole: bool) {
        let (items, depth) = match ask.part {
            Some(part) => {
                let style = if is_line(part) { Style::WHOLE } else { self.style };
                let text = line(part, style, &mut self.namer);
                self.write(text, 0, false);
                let children = if is_line(part) { &[] } else { part.children.as_slice() };
                (children, 1)
            }
            None => (tree.items.as_slice(), 0),
        };
        let items = items.get(ask.from..).unwrap_or_default();
        match (whole, ask.part) {
            (true, _) => items.iter().for_each(|item| self.whole(item, depth)),
            // A part was asked for because it is wanted, so its order counts and not the viewport.
            (false, Some(part)) => self.in_order(items, depth, Some(part), ask.from),
            (false, None) => self.items(items, depth, None, ask.from),
        }
    }

    fn done(self) -> Rendered {
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
        Rendered { text, truncated, folded, shortened }
    }

    /// The line of an item, or its part of one.
    fn item(&mut self, item: &Item, depth: usize) {
        if is_separator(item) {
            return;
        }
        let text = line(item, self.style, &mut self.namer);
        let short = self.dense && item.acts && item.children.is_empty() && text.len() <= SHORT;
        self.write(text, depth, short);
    }

    fn write(&mut self, text: String, depth: usize, short: bool) {
        if text.contains('…') {
            self.truncated = true;
            self.shortened += usize::from(!text.starts_with('…'));
        }
        let follows = short && self.has_room(text.len(), depth);
        self.used += text.len() + if follows { 2 } else { depth * 2 + 3 };
        self.pieces.push(Piece { text, depth, short, follows });
    }

    /// Whether the last line is one of short elements that can take one more.
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
        width <= WIDTH
    }

    /// What the viewport shows, and of the rest what there is room for.
    fn items(&mut self, items: &[Item], depth: usize, parent: Option<&Item>, from: usize) {
        let mut at = 0;
        while let Some(item) = items.get(at) {
            if self.used > self.limit {
                self.rest(items.get(at..).unwrap_or_default(), depth, parent, from + at);
                return;
            }
            if item.shown {
                self.item(item, depth);
                if !is_line(item) {
                    self.items(&item.children, depth + 1, Some(item), 0);
                }
                at += 1;
                continue;
            }
            let run = items.iter().skip(at).take_while(|item| !item.shown).count();
            self.hidden(items, at, at + run, depth, parent, from);
            at += run;
        }
    }

    /// Items that the viewport does not show, from one place to another.
    fn hidden(
        &mut self,
        items: &[Item],
        at: usize,
        end: usize,
        depth: usize,
        parent: Option<&Item>,
        from: usize,
    ) {
        let mut next = at;
        while next < end
            && let Some(item) = items.get(next)
        {
            let before = items.get(..next).unwrap_or_default().iter().rev().take(self.style.keep);
            if before.take_while(|before| shape(before) == shape(item)).count() >= self.style.keep {
                let run =
                    items.iter().take(end).skip(next).take_while(|more| shape(more) == shape(item)).count();
                self.rest(items.get(next..next + run).unwrap_or_default(), depth, parent, from + next);
                next += run;
                continue;
            }
            if !self.fits(item, depth) {
                next += usize::from(self.begins(item, depth));
                self.rest(items.get(next..end).unwrap_or_default(), depth, parent, from + next);
                return;
            }
            next += 1;
        }
    }

    /// The beginning of an item for which there is no room as a whole.
    fn begins(&mut self, item: &Item, depth: usize) -> bool {
        let begins = !is_line(item) && self.spare > LEAST;
        if begins {
            let used = self.used;
            self.item(item, depth);
            self.spare = self.spare.saturating_sub(self.used - used);
            self.in_order(&item.children, depth + 1, Some(item), 0);
        }
        begins
    }

    /// One after the other while there is room.
    fn in_order(&mut self, items: &[Item], depth: usize, parent: Option<&Item>, from: usize) {
        for (at, item) in items.iter().enumerate() {
            if self.fits(item, depth) {
                continue;
            }
            let next = at + usize::from(self.begins(item, depth));
            self.rest(items.get(next..).unwrap_or_default(), depth, parent, from + next);
            return;
        }
    }

    /// Writes an item with all that is in it if there is room, else nothing.
    fn fits(&mut self, item: &Item, depth: usize) -> bool {
        let (pieces, used, truncated) = (self.pieces.len(), self.used, self.truncated);
        let counts = (self.folded, self.shortened);
        let mark = self.namer.refs.as_ref().map_or(0, |refs| refs.mark());
        let limit = std::mem::replace(&mut self.limit, used + self.spare);
        self.whole(item, depth);
        let fits = self.used <= self.limit;
        self.limit = limit;
        if fits {
            self.spare -= self.used - used;
            return true;
        }
        self.pieces.truncate(pieces);
        (self.used, self.truncated) = (used, truncated);
        (self.folded, self.shortened) = counts;
        if let Some(refs) = self.namer.refs.as_mut() {
            refs.forget_since(mark);
        }
        false
    }

    /// An item with all that is in it; only siblings that look alike are folded.
    fn whole(&mut self, item: &Item, depth: usize) {
        if self.used > self.limit {
            return;
        }
        self.item(item, depth);
        if is_line(item) {
            return;
        }
        let mut at = 0;
        while let Some(child) = item.children.get(at) {
            let rest = item.children.get(at..).unwrap_or_default();
            let run = rest.iter().take_while(|more| shape(more) == shape(child)).count();
            let keep = if run > self.style.keep.saturating_add(1) { self.style.keep } else { run };
            rest.iter().take(keep).for_each(|child| self.whole(child, depth + 1));
            if keep < run {
                self.rest(rest.get(keep..run).unwrap_or_default(), depth + 1, Some(item), at + keep);
            }
            at += run;
        }
    }

    /// Says how much is left out, and how to ask for it.
    fn rest(&mut self, items: &[Item], depth: usize, parent: Option<&Item>, from: usize) {
        let Some(first) = items.first() else { return };
        self.truncated = true;
        self.folded += items.len();
        let alike = items.iter().all(|item| shape(item) == shape(first));
        let what = match (alike && items.len() > 1, count(items)) {
            (true, _) => format!("{} more {}", items.len(), plural(&first.role)),
            (false, said) if said.is_empty() => format!("{} more", items.len()),
            (false, said) => said,
        };
        let part = parent.and_then(|parent| self.namer.name(parent));
        let part = part.map(|part| format!("part={part} ")).unwrap_or_default();
        self.write(format!("… {what}: {part}from={from}"), depth, false);
    }
}

/// Items of one shape repeat each other.
fn shape(item: &Item) -> (&str, usize, Option<&str>) {
    // The number of parts may differ a little between the entries of a list.
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

/// What is in some items, by kind.
fn count(items: &[Item]) -> String {
    fn add(items: &[Item], counts: &mut BTreeMap<usize, (usize, &'static str)>) {
        for item in items {
            let (order, word) = match item.role.as_str() {
                role if is_heading(role) => (0, "headings"),
                "link" => (1, "links"),
                "button" | "tab" | "menuitem" | "clickable" | "summary" => (2, "buttons"),
                _ if item.acts => (3, "fields"),
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
