//! `fs_search`.

mod match_collector;
mod match_sink;
mod run_search;
mod search_match;

use crate::file_walk::glob_pattern::{GlobPattern, matches_hidden};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Fs, ModelText, Tool, ToolError, WorkPath, counted};
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
    const KEYWORDS: &'static str =
        "grep ripgrep look for occurrences string pattern code usage reference where";
    const REQUESTS: &'static [&'static str] = &[
        "where in the code is parse_config called",
        "grep for TODO in all source files",
        "which files mention the old domain name",
        "find the definition of the class Invoice",
        "look for an error message string in the codebase",
        "count occurrences of unwrap per file",
        "show matches of a regex with two lines around them",
    ];
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

    fn text(output: &Output) -> Option<String> {
        let shown = output.matches.len() as u64;
        let total = if output.total_is_exact { "" } else { "at least " };
        let more = if shown < output.total_matches { format!(", {shown} shown") } else { String::new() };
        let cut = if output.truncated { " (truncated)" } else { "" };
        ModelText::new()
            .line(format_args!("{total}{}{more}{cut}", counted(output.total_matches, "match", "matches")))
            .lines(output.notes.iter().map(|note| format!("note: {note}")))
            .lines(by_file(&output.matches))
            .finish()
    }

    async fn run(&self, input: Input, fs: Fs<Read>, cx: &CallContext) -> Result<Output, ToolError> {
        let wanted = SearchQuery::try_from(&input)?;
        let cx = cx.clone();
        fs.run(move |fs| run_search::search(&wanted, &fs.place(&input.path)?, fs, &cx)).await
    }
}

/// Each path once, then its lines: `12: match`, `13- context`.
fn by_file(matches: &[SearchMatch]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut path = None;
    for found in matches {
        if path != Some(&found.path) {
            path = Some(&found.path);
            let count = found.count.map_or(String::new(), |count| format!(": {count}"));
            lines.push(format!("{}{count}", found.path));
        }
        let (Some(line), Some(text)) = (found.line, &found.text) else { continue };
        let before = (1..=found.before.len() as u64).rev().map(|up| line.saturating_sub(up));
        lines.extend(before.zip(&found.before).map(|(line, text)| format!("  {line}- {text}")));
        let mark = if found.cut { " [line truncated]" } else { "" };
        lines.push(format!("  {line}: {text}{mark}"));
        lines.extend((line + 1..).zip(&found.after).map(|(line, text)| format!("  {line}- {text}")));
    }
    lines
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
    fn matches_are_grouped_by_file() {
        let found = |path: &str, line: u64, text: &str, before: &[&str], after: &[&str]| SearchMatch {
            path: path.to_owned(),
            line: Some(line),
            text: Some(text.to_owned()),
            before: before.iter().map(|line| (*line).to_owned()).collect(),
            after: after.iter().map(|line| (*line).to_owned()).collect(),
            ..SearchMatch::default()
        };
        let counted = SearchMatch { path: "b".to_owned(), count: Some(7), ..SearchMatch::default() };
        let rows = [
            (vec![], 0, "0 matches\nnote: n"),
            (
                vec![found("a", 3, "  x", &["1", "2"], &["4"])],
                9,
                "9 matches, 1 shown\nnote: n\na\n  1- 1\n  2- 2\n  3:   x\n  4- 4",
            ),
            (
                vec![found("a", 3, "x", &[], &[]), found("a", 5, "y", &[], &[])],
                2,
                "2 matches\nnote: n\na\n  3: x\n  5: y",
            ),
            (vec![counted], 1, "1 match\nnote: n\nb: 7"),
        ];
        for (matches, total_matches, text) in rows {
            let notes = vec!["n".to_owned()];
            let output = Output { matches, total_matches, truncated: false, total_is_exact: true, notes };
            assert_eq!(Search::text(&output).as_deref(), Some(text));
        }
    }

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
