//! `fs_read_many`.

use crate::encoding::Asked;
use crate::read_text::max_bytes;
use crate::reading::{self, Lines, Want};
use octo_toolkit::fs::Read;
use octo_toolkit::{Cx, Effect, Example, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const MOST_PATHS: usize = 100;

/// Reads several text files in one call; each comes with its text, or with the reason why not, in the order asked.
/// Prefer fs_read_text for a part of one file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Files to read, at most 100.
    paths: Vec<WorkPath>,
    /// Most bytes of all files together; small files are returned whole, large ones share the rest.
    #[serde(default = "max_bytes")]
    max_bytes: u64,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// One entry for every path, in the order asked.
    files: Vec<Entry>,
}

#[derive(Default, Serialize, JsonSchema)]
pub struct Entry {
    /// The path as it was given.
    path: String,
    /// The text; absent when the file could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// Why the file could not be read, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Lines of the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line_count: Option<u64>,
    /// Size of the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    /// The encoding that the file is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    /// SHA-256 of the whole file, for if_hash of a later change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// True when lines were left out.
    truncated: bool,
    /// Give it to fs_read_text as start_line to go on reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

pub struct ReadMany;

impl Tool for ReadMany {
    const NAME: &'static str = "fs_read_many";
    const TITLE: &'static str = "Read several text files";
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Read>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Two files at once", json!({"paths": ["README.md", "docs/guide.md"]})),
            Example::new(
                "A file that is missing does not spoil the others",
                json!({"paths": ["notes.txt", "missing.txt"], "max_bytes": 1000}),
            ),
        ]
    }

    async fn run(&self, input: Input, fs: Fs<Read>, cx: &Cx) -> Result<Output, ToolError> {
        if input.paths.is_empty() || input.paths.len() > MOST_PATHS {
            return Err(ToolError::invalid(format!("{} paths were given.", input.paths.len()))
                .hint(format!("Give 1 to {MOST_PATHS} paths in one call.")));
        }
        let cx = cx.clone();
        fs.run(move |fs| {
            let sizes: Vec<u64> = input.paths.iter().map(|path| size(fs, path)).collect();
            let shares = shares(&sizes, input.max_bytes);
            let mut files = Vec::with_capacity(shares.len());
            for (path, share) in input.paths.iter().zip(shares) {
                cx.check()?;
                files.push(entry(fs, path, share, &cx));
            }
            Ok(Output { files })
        })
        .await
    }
}

fn size(fs: &Fs<Read>, path: &WorkPath) -> u64 {
    fs.place(path).and_then(|place| fs.stat(&place)).map_or(0, |stat| stat.size)
}

/// Parts the budget: who needs less than an equal share leaves the rest to the others.
fn shares(sizes: &[u64], budget: u64) -> Vec<u64> {
    let mut order: Vec<(usize, u64)> = sizes.iter().copied().enumerate().collect();
    order.sort_by_key(|(_, size)| *size);
    let mut shares = vec![0; sizes.len()];
    let mut left = budget;
    for (served, (index, size)) in order.iter().enumerate() {
        let share = (left / (sizes.len() - served) as u64).min(*size);
        left -= share;
        if let Some(slot) = shares.get_mut(*index) {
            *slot = share;
        }
    }
    shares
}

fn entry(fs: &Fs<Read>, path: &WorkPath, share: u64, cx: &Cx) -> Entry {
    let want = Want { lines: Lines::Span(1, u64::MAX - 1), asked: Asked::Detect, max_bytes: share };
    let told = path.to_string();
    match fs.place(path).and_then(|place| reading::read(fs, &place, want, cx)) {
        Ok(reading) => Entry {
            path: told,
            content: Some(reading.content),
            error: None,
            line_count: Some(reading.line_count),
            size_bytes: Some(reading.opened.stat.size),
            encoding: Some(reading.encoding),
            hash: reading.hash,
            truncated: reading.truncated,
            next: reading.next,
        },
        Err(error) => Entry { path: told, error: Some(error.text()), ..Entry::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn the_budget_is_shared_fairly() {
        let rows: [(&[u64], u64, &[u64]); 5] = [
            (&[10, 10], 100, &[10, 10]),
            (&[1000, 10, 1000], 110, &[50, 10, 50]),
            (&[100, 100], 100, &[50, 50]),
            (&[0, 5], 3, &[0, 3]),
            (&[], 3, &[]),
        ];
        for (sizes, budget, wanted) in rows {
            assert_eq!(shares(sizes, budget), wanted);
        }
    }
}
