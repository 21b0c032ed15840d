//! `fs_search`.

mod match_collector;
mod match_sink;
mod run_search;
mod search_match;

use crate::file_walk::glob_pattern::{GlobPattern, matches_hidden};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use search_match::SearchMatch;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Upper limit for max_results.
const MAX_MATCHES: usize = 10_000;
/// Upper limit for context_lines.
const MAX_CONTEXT_LINES: usize = 20;

/// Finds text inside files by regular expression, sorted by path and line, without ignored, hidden and binary files;
/// no match returns an empty list. Prefer fs_glob to find files by name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Regular expression (Rust syntax), matched line by line; see fixed for plain text.
    pattern: String,
    /// Folder or file to search, relative to the workspace.
    #[serde(default = "WorkPath::here")]
    path: WorkPath,
    /// Only files that match, such as *.rs or src/**/*.ts; with a leading ! only the others.
    #[serde(default)]
    glob: Option<String>,
    /// Maximum number of matches, up to 10000; 0 only counts.
    #[serde(default = "max_results")]
    max_results: usize,
    /// Match case.
    #[serde(default = "default_true")]
    case_sensitive: bool,
    /// Lines to return before and after each match, up to 20.
    #[serde(default)]
    context_lines: usize,
    /// Treat the pattern as plain text.
    #[serde(default)]
    fixed: bool,
    /// What to return: lines, only the files, or counts of matching lines per file.
    #[serde(default)]
    show: Show,
    /// Also files and folders that start with a dot; true by default if glob has such a name.
    #[serde(default)]
    hidden: Option<bool>,
    /// Also what .gitignore and .ignore exclude.
    #[serde(default)]
    ignored: bool,
}

fn max_results() -> usize {
    100
}

fn default_true() -> bool {
    true
}

#[derive(Deserialize, Serialize, JsonSchema, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Show {
    #[default]
    Lines,
    Files,
    Counts,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Matches, sorted by path and line.
    matches: Vec<SearchMatch>,
    /// Total number of matching lines; with files and counts, of files.
    total_matches: u64,
    /// True if there are more than were returned.
    truncated: bool,
    /// False if the search was stopped early; total_matches is then a lower bound.
    total_is_exact: bool,
    /// What was skipped or could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

pub struct Search;

impl Tool for Search {
    const NAME: &'static str = "fs_search";
    const TITLE: &'static str = "Search in files";
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Read>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Where functions are defined", json!({"pattern": "fn \\w+\\(", "glob": "*.rs"})),
            Example::new(
                "Plain text, with a line around",
                json!({"pattern": "a.b(", "fixed": true, "context_lines": 1}),
            ),
            Example::new(
                "Only which files",
                json!({"pattern": "TODO", "case_sensitive": false, "show": "files"}),
            ),
        ]
    }

    async fn run(&self, input: Input, fs: Fs<Read>, cx: &CallContext) -> Result<Output, ToolError> {
        let wanted = SearchQuery::try_from(&input)?;
        let cx = cx.clone();
        fs.run(move |fs| run_search::search(&wanted, &fs.place(&input.path)?, fs, &cx)).await
    }
}

/// A validated query.
struct SearchQuery {
    matcher: RegexMatcher,
    glob: Option<GlobPattern>,
    max_matches: usize,
    context: usize,
    show: Show,
    hidden: bool,
    ignored: bool,
}

impl TryFrom<&Input> for SearchQuery {
    type Error = ToolError;

    fn try_from(input: &Input) -> Result<Self, ToolError> {
        Ok(Self {
            matcher: matcher(input)?,
            glob: input.glob.as_deref().map(GlobPattern::parse).transpose()?,
            max_matches: input.max_results.min(MAX_MATCHES),
            context: if input.show == Show::Lines { input.context_lines.min(MAX_CONTEXT_LINES) } else { 0 },
            show: input.show,
            hidden: input.hidden.unwrap_or_else(|| input.glob.as_deref().is_some_and(matches_hidden)),
            ignored: input.ignored,
        })
    }
}

fn matcher(input: &Input) -> Result<RegexMatcher, ToolError> {
    if input.pattern.is_empty() {
        return Err(
            ToolError::invalid("The pattern is empty.").hint("Pass the text or expression to search for.")
        );
    }
    if input.fixed && input.pattern.contains('\n') {
        return Err(line_break());
    }
    RegexMatcherBuilder::new()
        .case_insensitive(!input.case_sensitive)
        .fixed_strings(input.fixed)
        .multi_line(true)
        .crlf(true)
        .build(&input.pattern)
        .map_err(|error| refusal(&error.to_string()))
}

fn line_break() -> ToolError {
    ToolError::invalid("The pattern contains a line break; files are searched line by line.")
        .hint("Search for one of its lines, with context_lines to see the lines around it.")
}

/// The engine wraps the pattern in a group, so only the last part of its message is returned.
fn refusal(error: &str) -> ToolError {
    if error.contains("\"\\n\" is not allowed") {
        return line_break();
    }
    let why = error.rsplit("error: ").next().unwrap_or(error).trim().trim_end_matches('.');
    ToolError::invalid(format!("The pattern is not a valid regular expression: {why}."))
        .hint("Escape special characters with a backslash, or set fixed to search for plain text.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_is_none_is_refused_in_one_sentence() {
        for (pattern, wanted) in [
            ("(", "The pattern is not a valid regular expression: unclosed group."),
            ("a\\nb", "The pattern contains a line break; files are searched line by line."),
            ("a\nb", "The pattern contains a line break; files are searched line by line."),
        ] {
            let input: Input = serde_json::from_value(json!({"pattern": pattern})).unwrap();
            let error = matcher(&input).err().unwrap();
            assert_eq!(error.message, wanted);
        }
    }
}
