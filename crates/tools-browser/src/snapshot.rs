//! A page as a model reads it: the accessibility tree, trimmed, with refs that stay while the element lives.

mod diff;
mod line;
mod markdown;
mod near;
mod refs;
mod render;
mod roles;
mod tree;
mod view;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

pub use diff::{Flat, changes, flat};
pub use markdown::{links, markdown, plain};
pub use near::{Near, nearest, wanted};
pub use refs::{Known, Refs};
pub use render::{Ask, render};
pub use tree::{FILE_FIELD, Item, Tree};
pub use view::View;

/// Letters of a token, about: refs and marks are short ones.
pub const LETTERS: usize = 3;

/// Tokens of a text, about; a letter that is not plain English counts as one.
#[cfg(test)]
pub fn tokens(text: &str) -> usize {
    let plain = text.bytes().filter(u8::is_ascii).count();
    let other = text.chars().filter(|letter| !letter.is_ascii()).count();
    plain.div_ceil(LETTERS) + other
}
