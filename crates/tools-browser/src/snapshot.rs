//! Page snapshot for models: the trimmed accessibility tree, with refs that are stable for the lifetime of an element.

mod element_refs;
mod item_line;
mod item_search;
mod layout_view;
mod page_tree;
mod roles;
mod snapshot_diff;
mod snapshot_render;
mod tree_markdown;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tree_fixture;

pub use element_refs::{RefTarget, Refs};
pub use item_search::{ItemMatch, closest_items, find_items};
pub use layout_view::LayoutView;
pub use page_tree::{FILE_FIELD_ROLE, PageItem, PageTree};
pub use snapshot_diff::{FlatSnapshot, changes, flatten};
pub use snapshot_render::{RenderOptions, render};
pub use tree_markdown::{links, markdown, plain_text};

/// Approximate characters per token: refs and punctuation are short tokens.
pub const CHARS_PER_TOKEN: usize = 3;

/// Approximate tokens of a text; a non-ASCII character counts as one.
#[cfg(test)]
pub fn tokens(text: &str) -> usize {
    let plain = text.bytes().filter(u8::is_ascii).count();
    let other = text.chars().filter(|letter| !letter.is_ascii()).count();
    plain.div_ceil(CHARS_PER_TOKEN) + other
}
