//! Detection of secrets by their format.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;
use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

/// A format: words of which one must be in the line, the expression, and its replacement.
struct Pattern {
    words: &'static [&'static str],
    regex: &'static str,
    replacement: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

const fn pattern(words: &'static [&'static str], shape: &'static str, instead: &'static str) -> Pattern {
    Pattern { words, regex: shape, replacement: instead, compiled: OnceLock::new() }
}

/// Words of names that indicate a secret.
const NAME_WORDS: &[&str] =
    &["pass", "pwd", "secret", "token", "key", "credential", "authorization", "cookie"];

/// An expression is compiled when a line first contains one of its words, to keep startup cheap.
static PATTERNS: [Pattern; 11] = [
    pattern(
        &["-----begin"],
        r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
        "***",
    ),
    pattern(&["bearer", "basic"], r"(?i-u:\b(bearer|basic)(?:\s|%20|\+)+)[A-Za-z0-9._~+/=%-]{6,}", "$1 ***"),
    pattern(&["eyj"], r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?", "***"),
    pattern(&["sk-", "pk-", "rk-"], r"(?-u:\b)[spr]k-[A-Za-z0-9_-]{12,}", "***"),
    pattern(
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"],
        r"(?-u:\b)(?:gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_-]{16,}",
        "***",
    ),
    pattern(
        &["lin_api_", "tvly-", "sg."],
        r"(?-u:\b)(?:lin_api_[A-Za-z0-9]{12,}|tvly-[A-Za-z0-9-]{12,}|SG\.[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,})",
        "***",
    ),
    pattern(&["akia", "asia"], r"(?-u:\b)A(?:KI|SI)A[0-9A-Z]{16}", "***"),
    pattern(&["xox", "octo_"], r"(?-u:\b)(?:xox[abeprs]-[A-Za-z0-9-]{10,}|octo_[0-9a-f]{32,})", "***"),
    pattern(&["://"], r#"(://[^\s/:@"'\\]*):[^\s/@"'\\]+@"#, "$1:***@"),
    pattern(
        NAME_WORDS,
        // A number, truth value or null of a JSON member becomes a string, so that the line stays JSON.
        r#"(?i-u:("(?:[a-z0-9_. -]*(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)|authorization|set-cookie|cookie)"\s*:\s*))(?:-?[0-9][0-9.eE+-]*|true|false|null)(\s*[,}\]])"#,
        "$1\"***\"$2",
    ),
    pattern(
        NAME_WORDS,
        // The value after a name that indicates a secret: as a parameter, a header or a JSON member.
        r#"(?i-u:((?:[a-z0-9_-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)|authorization|set-cookie|cookie)\\{0,3}["']?\s*(?:=|:|%3d)\s*\\{0,3}["']?(?:bearer |basic )?))[^\s"'&,;}\\]+"#,
        "$1***",
    ),
];

/// All words of all patterns, searched in one pass, with the pattern of each.
struct WordIndex {
    search: Option<AhoCorasick>,
    patterns: Vec<usize>,
}

static WORDS: LazyLock<WordIndex> = LazyLock::new(|| {
    let words =
        || PATTERNS.iter().enumerate().flat_map(|(at, it)| it.words.iter().map(move |word| (at, word)));
    let search = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words().map(|(_, word)| word));
    WordIndex { search: search.ok(), patterns: words().map(|(at, _)| at).collect() }
});

impl WordIndex {
    /// A bit mask of patterns with a word in the line; all of them if the search cannot be built.
    fn patterns_in(&self, line: &str) -> u32 {
        let Some(search) = &self.search else { return u32::MAX };
        // Most lines have no such word, and this check is cheaper.
        if !search.is_match(line) {
            return 0;
        }
        let bit = |word: usize| self.patterns.get(word).map_or(0, |at| 1 << at);
        search.find_overlapping_iter(line).fold(0, |bits, found| bits | bit(found.pattern().as_usize()))
    }
}

/// Masks all known secret formats in a line.
pub fn mask(line: &str) -> Cow<'_, str> {
    let candidates = WORDS.patterns_in(line);
    PATTERNS.iter().enumerate().fold(Cow::Borrowed(line), |line, (at, pattern)| {
        if candidates & (1 << at) == 0 {
            return line;
        }
        match pattern.compiled() {
            Some(regex) if regex.is_match(&line) => {
                Cow::Owned(regex.replace_all(&line, pattern.replacement).into_owned())
            }
            Some(_) => line,
            None => Cow::Borrowed("***"),
        }
    })
}

impl Pattern {
    fn compiled(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| Regex::new(self.regex).ok()).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_can_be_read() {
        assert!(PATTERNS.iter().all(|pattern| pattern.compiled().is_some()));
    }

    #[test]
    fn shapes_are_masked_and_words_stay() {
        for (line, masked) in [
            ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
            (r#"{"authorization":"Bearer abcdefgh"}"#, r#"{"authorization":"Bearer ***"}"#),
            ("GET /?password=hunter2&page=2", "GET /?password=***&page=2"),
            (r#"{"api_key": "abc", "page": 2}"#, r#"{"api_key": "***", "page": 2}"#),
            (r#"{"m":"{\"client_secret\":\"abc\"}"}"#, r#"{"m":"{\"client_secret\":\"***\"}"}"#),
            ("key sk-proj-0123456789abcdef end", "key *** end"),
            ("ghp_0123456789abcdefghij", "***"),
            ("AKIAIOSFODNN7EXAMPLE", "***"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "***"),
            ("postgresql://ada:hunter2@db/main", "postgresql://ada:***@db/main"),
            ("octo_0123456789abcdef0123456789abcdef", "***"),
            ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "***"),
            ("the token was refused", "the token was refused"),
            ("listening on http://127.0.0.1:7000/mcp", "listening on http://127.0.0.1:7000/mcp"),
            (r#"{"max_tokens_total":5}"#, r#"{"max_tokens_total":5}"#),
            (r#"{"token":5,"has_secret": true}"#, r#"{"token":"***","has_secret": "***"}"#),
            (r#"{"lease.token":7,"cookie":true}"#, r#"{"lease.token":"***","cookie":"***"}"#),
            (r#"[{"lease_token":-1.5e3}]"#, r#"[{"lease_token":"***"}]"#),
        ] {
            assert_eq!(mask(line), masked);
        }
    }
}
