//! Amount of text, links and prose in each node of a page.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is a node of the tree, and the lists have its length"
)]

use super::flat_dom::{FlatDom, NodeContent};

const INLINE_TAGS: &[&str] = &[
    "a", "abbr", "b", "bdi", "bdo", "big", "br", "cite", "code", "data", "del", "dfn", "em", "font", "i",
    "img", "ins", "kbd", "label", "mark", "nobr", "picture", "q", "s", "samp", "small", "source", "span",
    "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
];
/// Shorter blocks do not count as prose.
const MIN_PROSE_CHARS: usize = 30;

pub fn is_inline(tag: &str) -> bool {
    INLINE_TAGS.contains(&tag) || tag.contains('-')
}

#[derive(Clone, Copy, Default)]
pub struct TextMeasure {
    /// Non-whitespace characters.
    pub chars: usize,
    /// Non-whitespace characters inside links.
    pub link_chars: usize,
    /// Characters in blocks that read like prose.
    pub prose: usize,
    pub links: usize,
}

impl TextMeasure {
    pub fn link_density(&self) -> f64 {
        if self.chars == 0 { 0.0 } else { self.link_chars as f64 / self.chars as f64 }
    }
}

/// Measures every node; removed nodes do not count.
pub fn measure(tree: &FlatDom, removed: &[bool]) -> Vec<TextMeasure> {
    let count = tree.nodes.len();
    let mut all = vec![TextMeasure::default(); count];
    // Text of a block outside of its inner blocks.
    let mut own = vec![(0usize, 0usize, 0usize); count];
    for at in (0..count).rev() {
        if removed.get(at).copied().unwrap_or(false) {
            all[at] = TextMeasure::default();
            own[at] = (0, 0, 0);
            continue;
        }
        match &tree.nodes[at].data {
            NodeContent::Text(text) => {
                all[at].chars = text.chars;
                own[at] = (text.chars, 0, text.stops);
            }
            NodeContent::Element(element) => {
                if &*element.tag == "a" {
                    all[at].link_chars = all[at].chars;
                    all[at].links += 1;
                    own[at].1 = own[at].0;
                }
                if !element.inline {
                    let (chars, linked, stops) = own[at];
                    let is_prose =
                        chars >= MIN_PROSE_CHARS && linked * 2 < chars && (stops > 0 || chars > 120);
                    if is_prose && !element.is(&["h1", "h2", "h3", "h4", "h5", "h6"]) {
                        all[at].prose += chars - linked;
                    }
                    own[at] = (0, 0, 0);
                }
            }
        }
        if at > 0 {
            let parent = tree.parent(at);
            let (mine, text) = (all[at], own[at]);
            let above = &mut all[parent];
            above.chars += mine.chars;
            above.link_chars += mine.link_chars;
            above.prose += mine.prose;
            above.links += mine.links;
            let above = &mut own[parent];
            *above = (above.0 + text.0, above.1 + text.1, above.2 + text.2);
        }
    }
    all
}
