//! Glob patterns: `*.rs` at any depth, `src/**/*.rs` relative to the start of the search.

use globset::{GlobBuilder, GlobMatcher};
use octo_toolkit::ToolError;
use std::path::{Component, Path};

pub struct GlobPattern {
    matcher: GlobMatcher,
    /// Starts with `!`: inverts the match.
    negated: bool,
    /// Directories that the pattern names before its first special character.
    folders: Vec<String>,
}

impl GlobPattern {
    pub fn parse(text: &str) -> Result<Self, ToolError> {
        let (negated, text) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let text = text.trim_start_matches("./");
        check(text)?;
        let anchored = text.trim_end_matches('/').contains('/');
        let inner = if text.ends_with('/') { "**" } else { "" };
        let pattern = if anchored { format!("{text}{inner}") } else { format!("**/{text}{inner}") };
        let matcher = GlobBuilder::new(&pattern).literal_separator(true).empty_alternates(true).build();
        let matcher = matcher.map_err(|error| wrong(&error.kind().to_string()))?.compile_matcher();
        let plain = |part: &&str| !part.contains(['*', '?', '[', '{', '\\']);
        let mut folders: Vec<String> = Vec::new();
        if anchored && !negated {
            folders = pattern.split('/').take_while(plain).map(str::to_owned).collect();
            if folders.len() == pattern.split('/').count() {
                folders.pop();
            }
        }
        Ok(Self { matcher, negated, folders })
    }

    pub fn matches(&self, path: &Path) -> bool {
        self.matcher.is_match(path) != self.negated
    }

    /// Whether something beneath a directory could match.
    pub fn may_match_below(&self, folder: &Path) -> bool {
        let parts = folder.components().map(Component::as_os_str);
        parts.zip(&self.folders).all(|(part, wanted)| part == wanted.as_str())
    }
}

/// Whether a pattern explicitly includes hidden names.
pub fn matches_hidden(text: &str) -> bool {
    let text = text.trim_start_matches('!').trim_start_matches("./");
    text.split(['/', '{', ',']).any(|part| part.starts_with('.') && part.len() > 1)
}

fn check(text: &str) -> Result<(), ToolError> {
    if text.is_empty() {
        return Err(wrong("it is empty"));
    }
    if text.starts_with('/') || text.split('/').any(|part| part == "..") {
        return Err(ToolError::invalid("The pattern must stay beneath path: no leading slash and no `..`.")
            .hint("Use the directory as path and the pattern relative to it, such as `src/**/*.rs`."));
    }
    Ok(())
}

fn wrong(why: &str) -> ToolError {
    ToolError::invalid(format!("The glob pattern is not valid: {why}."))
        .hint("Use *, **, ?, [ab] and {a,b}; escape such a character with a backslash.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_or_paths() {
        for (pattern, yes, no) in [
            ("*.rs", &["a.rs", "src/a.rs", "a/b/c.rs"][..], &["a.rsx", "rs"][..]),
            ("**/*.rs", &["a.rs", "src/a.rs"], &["a.txt"]),
            ("src/*.rs", &["src/a.rs"], &["src/b/a.rs", "x/src/a.rs", "a.rs"]),
            ("./src/*.rs", &["src/a.rs"], &["a.rs"]),
            ("src/**", &["src/a", "src/b/c"], &["src", "x/src/a"]),
            ("src/", &["src/a", "src/b/c", "x/src/y"], &["src"]),
            ("{a,b}.txt", &["a.txt", "x/b.txt"], &["c.txt"]),
            ("*.{ts,tsx}", &["a.ts", "b/c.tsx"], &["a.t"]),
            ("a[0-9]?", &["a1x"], &["a1", "abx"]),
            ("!*.rs", &["a.txt"], &["a.rs", "b/a.rs"]),
            ("!vendor/**", &["a.rs"], &["vendor/a.rs"]),
            ("\\*", &["*"], &["a"]),
        ] {
            let glob = GlobPattern::parse(pattern).unwrap();
            for path in yes {
                assert!(glob.matches(Path::new(path)), "{pattern} {path}");
                let folders = Path::new(path).ancestors().skip(1).filter(|folder| *folder != Path::new(""));
                assert!(
                    folders.into_iter().all(|folder| glob.may_match_below(folder)),
                    "{pattern} reaches {path}"
                );
            }
            for path in no {
                assert!(!glob.matches(Path::new(path)), "{pattern} {path}");
            }
        }
    }

    #[test]
    fn folders_that_cannot_match_are_not_reached() {
        for (pattern, folder, reached) in [
            ("src/**/*.rs", "src", true),
            ("src/**/*.rs", "src/a/b", true),
            ("src/**/*.rs", "docs", false),
            ("src/a/x.rs", "src/b", false),
            ("src/a/x.rs", "src/a/c", true),
            ("*.rs", "docs", true),
            ("!src/**", "docs", true),
            ("s*/a/*", "docs", true),
        ] {
            assert_eq!(
                GlobPattern::parse(pattern).unwrap().may_match_below(Path::new(folder)),
                reached,
                "{pattern} {folder}"
            );
        }
    }

    #[test]
    fn wrong_patterns_are_refused_with_a_hint() {
        for pattern in ["", "!", "[", "{a", "/etc/*", "../x", "a/../b"] {
            let error = GlobPattern::parse(pattern).err().unwrap_or_else(|| panic!("{pattern} is taken"));
            assert!(error.hint.is_some(), "{pattern}");
        }
    }

    #[test]
    fn a_dot_in_front_asks_for_hidden_names() {
        for (pattern, hidden) in [
            (".env*", true),
            (".github/**", true),
            ("**/.eslintrc.{js,json}", true),
            ("{.a,b}", true),
            ("*.rs", false),
            ("./a", false),
            ("a.b/c.d", false),
        ] {
            assert_eq!(matches_hidden(pattern), hidden, "{pattern}");
        }
    }
}
