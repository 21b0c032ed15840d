//! Finds attributes: `#[…]` and `#![…]`.

use super::rust_sources::Source;
use crate::rust_scan;

/// An attribute without its brackets.
#[derive(Debug)]
pub struct Attribute<'a> {
    pub line: usize,
    pub text: &'a str,
    pub code: &'a str,
}

pub fn attributes_of(source: &Source) -> Vec<Attribute<'_>> {
    let hashes = source.code.match_indices('#').map(|(at, _)| at);
    hashes.filter_map(|at| attribute(source, at)).collect()
}

fn attribute(source: &Source, hash: usize) -> Option<Attribute<'_>> {
    let after = source.code.get(hash + 1..)?;
    let open = hash + 1 + usize::from(after.starts_with('!'));
    if source.code.as_bytes().get(open) != Some(&b'[') {
        return None;
    }
    let inside = open + 1..rust_scan::closing_bracket(&source.code, open)? - 1;
    let (text, code) = (source.text.get(inside.clone())?, source.code.get(inside)?);
    Some(Attribute { line: source.line_of(hash), text, code })
}

impl Attribute<'_> {
    /// `allow` of `allow(…)`.
    pub fn name(&self) -> &str {
        self.code.split('(').next().unwrap_or_default().trim()
    }
}
