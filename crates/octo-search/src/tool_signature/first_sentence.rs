//! The first sentence of a description.

use super::ELLIPSIS;

/// Characters of a sentence.
const MAX_CHARS: usize = 100;
/// Bytes of a description that are read.
const MAX_BYTES: usize = 4 * 1024;
/// A full stop after these ends no sentence.
const ABBREVIATIONS: [&str; 8] = ["e.g.", "i.e.", "etc.", "vs.", "cf.", "approx.", "incl.", "no."];

/// The first sentence of a text on one line, cut at a word if it is long.
pub(super) fn first_sentence(text: &str) -> String {
    let text = text.trim_start_matches(|letter: char| {
        letter.is_whitespace() || letter.is_control() || matches!(letter, '#' | '*' | '>' | '-' | '`')
    });
    let text = text.get(..text.floor_char_boundary(MAX_BYTES)).unwrap_or_default();
    let line: Vec<&str> = first_paragraph(text).split(is_space).filter(|word| !word.is_empty()).collect();
    let mut sentence = String::new();
    let mut chars = 0;
    for word in line {
        let (word, is_end) = end_of_sentence(word);
        let count = word.chars().count() + usize::from(!sentence.is_empty());
        if chars + count > MAX_CHARS {
            return cut(sentence, word);
        }
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        chars += count;
        if is_end {
            break;
        }
    }
    sentence
}

fn is_space(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control()
}

/// The text before an empty line, or before a line that begins like a new sentence or list.
fn first_paragraph(text: &str) -> &str {
    let breaks = text.match_indices('\n').map(|(at, _)| at);
    let mut ends = breaks.filter(|at| {
        let next = text.get(at + 1..).unwrap_or_default().lines().next().unwrap_or_default().trim_start();
        !next.starts_with(char::is_lowercase)
    });
    text.get(..ends.next().unwrap_or(text.len())).unwrap_or(text)
}

/// The word up to the end of a sentence in it, and whether there is one.
fn end_of_sentence(word: &str) -> (&str, bool) {
    if let Some((at, letter)) = word.char_indices().find(|(_, letter)| matches!(letter, '。' | '！' | '？'))
    {
        return (word.get(..at + letter.len_utf8()).unwrap_or(word), true);
    }
    let bare = word.trim_end_matches([')', '"', '\'', '*', '`', '”']);
    let is_abbreviation = ABBREVIATIONS.contains(&bare.trim_start_matches('(').to_ascii_lowercase().as_str());
    (word, bare.ends_with(['.', '!', '?']) && !is_abbreviation)
}

/// A sentence that goes on; a text without spaces is cut anywhere.
fn cut(mut sentence: String, next: &str) -> String {
    if sentence.is_empty() {
        sentence.extend(next.chars().take(MAX_CHARS));
    }
    let end = sentence.trim_end_matches([',', ';', ':', '(', '-', '–']).len();
    sentence.truncate(end);
    sentence + ELLIPSIS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_become_one_sentence() {
        let rows = [
            ("Read a file. It must exist.", "Read a file."),
            ("\n  ## Read   a\tfile", "Read a file"),
            ("Read a file\nfrom disk. Then more.", "Read a file from disk."),
            ("Read a file\nArgs:\n  path", "Read a file"),
            ("Read a file\n\nfrom disk", "Read a file"),
            ("Read a file, e.g. a log (i.e. text). More", "Read a file, e.g. a log (i.e. text)."),
            ("Use v1.2 of api.example.com now! More", "Use v1.2 of api.example.com now!"),
            ("搜索网页。返回结果", "搜索网页。"),
            ("使用必应搜索", "使用必应搜索"),
            ("a\u{1b}[0m\u{0}b", "a [0m b"),
            ("", ""),
            ("***", ""),
        ];
        for (text, expected) in rows {
            assert_eq!(first_sentence(text), expected, "{text}");
        }
    }

    #[test]
    fn long_sentences_are_cut_at_a_word() {
        let cut = first_sentence(&"several words, ".repeat(10_000));
        assert_eq!(cut, format!("{}several…", "several words, ".repeat(6)));
        assert_eq!(first_sentence(&"x".repeat(100_000)), format!("{}…", "x".repeat(MAX_CHARS)));
        assert_eq!(first_sentence(&"图".repeat(100_000)), format!("{}…", "图".repeat(MAX_CHARS)));
    }
}
