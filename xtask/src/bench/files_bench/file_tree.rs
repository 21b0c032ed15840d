//! A deterministic tree of 20,000 files and 230 MB, created once.

use anyhow::Result;
use std::fmt::Write;
use std::path::Path;

/// Occurs in about a hundred lines.
pub const NEEDLE: &str = "needle_[0-9]+_found";
/// Matches one name in a hundred.
pub const NAME_GLOB: &str = "*_7[0-9]7.md";
/// A file of about 10 KB.
pub const TEN_KB_FILE: &str = "ten.txt";

const FILE_COUNT: u64 = 20_000;
const TOTAL_BYTES: u64 = 230_000_000;
/// Must change with the tree.
const TREE_VERSION: &str = "1\n";

const WORDS: [&str; 16] = [
    "let", "value", "return", "self", "match", "stream", "buffer", "config", "error", "result", "index",
    "length", "handle", "request", "answer", "window",
];

pub fn create_tree(folder: &Path) -> Result<()> {
    let edition = folder.join(".edition");
    if std::fs::read_to_string(&edition).is_ok_and(|text| text == TREE_VERSION) {
        return Ok(());
    }
    eprintln!("creating {} ({} MB)", folder.display(), TOTAL_BYTES / 1_000_000);
    let _ = std::fs::remove_dir_all(folder);
    // With a .git directory, so that ripgrep respects the ignore file.
    std::fs::create_dir_all(folder.join(".git"))?;
    std::fs::write(folder.join(".gitignore"), "build/\nnode_modules/\n*.log\n")?;
    std::fs::write(folder.join(TEN_KB_FILE), text(1, 10_000))?;
    for number in 0..FILE_COUNT {
        let path = folder.join(path(number));
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        // Sizes from a fifth of the average to nearly twice the average.
        let size = TOTAL_BYTES / FILE_COUNT * (2 + number * 7 % 17) / 10;
        let mut text = text(number, usize::try_from(size)?);
        if number % 200 == 3 {
            writeln!(text, "needle_{number}_found")?;
        }
        std::fs::write(path, text)?;
    }
    std::fs::write(edition, TREE_VERSION)?;
    Ok(())
}

/// Fifty files per directory, four levels deep; one directory in ten is ignored.
fn path(number: u64) -> String {
    let group = number / 50;
    let top = match group % 20 {
        5 => "build",
        15 => "node_modules",
        _ => "source",
    };
    let kind = ["rs", "ts", "md", "py", "json"].get((number % 5) as usize).copied().unwrap_or("txt");
    format!("area{}/{top}/part{}/unit{group}/file_{number}.{kind}", group % 8, group % 5)
}

/// Lines of words from a fixed generator.
fn text(seed: u64, size: usize) -> String {
    let mut state = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let mut text = String::with_capacity(size + 16);
    while text.len() < size {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS.get((state >> 60) as usize).copied().unwrap_or_default());
        text.push(if (state >> 40).is_multiple_of(9) { '\n' } else { ' ' });
    }
    text.push('\n');
    text
}
