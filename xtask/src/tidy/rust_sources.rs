//! Rust files of the repository.

use crate::rust_scan;
use anyhow::Result;
use std::path::Path;

/// A file, and its text with everything blanked that is not code.
#[derive(Debug)]
pub struct Source {
    /// Relative to the workspace, with `/`.
    pub path: String,
    pub text: String,
    /// Same length as `text`; comments and the contents of literals are spaces.
    pub code: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), code: rust_scan::blank_non_code(text), text: text.to_owned() }
    }

    /// Whether the file is no part of the binary.
    pub fn is_test(&self) -> bool {
        ["tests/", "xtask/"].iter().any(|home| self.path.starts_with(home))
            || ["/tests/", "/examples/", "/benches/"].iter().any(|part| self.path.contains(part))
            || self.path.ends_with("/tests.rs")
    }

    /// Line number of a byte, from one.
    pub fn line_of(&self, byte: usize) -> usize {
        self.text.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1
    }
}

const SOURCE_DIRS: [&str; 3] = ["crates", "tests", "xtask"];

pub fn read_all(root: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    for place in SOURCE_DIRS {
        collect(root, &root.join(place), &mut found)?;
    }
    found.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

fn collect(root: &Path, dir: &Path, found: &mut Vec<Source>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(root, &path, found)?;
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let name = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
            found.push(Source::new(&name, &std::fs::read_to_string(&path)?));
        }
    }
    Ok(())
}
