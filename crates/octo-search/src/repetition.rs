//! Texts that repeat words to be found.

use crate::field_words::split_words;
use crate::stem;
use crate::tokenize::is_stop_word;
use std::collections::HashMap;

/// Words at the beginning of a text that are looked at. Longer texts repeat words by themselves.
const MAX_WORDS: usize = 60;
/// Shorter texts repeat nothing that matters.
const MIN_WORDS: usize = 6;
/// A word may occur this often.
const MAX_OCCURRENCES: usize = 2;

/// Share of the words in a text that repeat others more often than a description needs, from 0 to 1.
pub fn repetition(text: &str) -> f32 {
    let beginning = text.get(..text.floor_char_boundary(MAX_WORDS * 20)).unwrap_or_default();
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut count = 0;
    split_words(beginning, |word| {
        if count < MAX_WORDS && !is_stop_word(word) {
            count += 1;
            *counts.entry(stem(word)).or_default() += 1;
        }
    });
    if count < MIN_WORDS {
        return 0.0;
    }
    let repeated: usize =
        counts.values().map(|occurrences| occurrences.saturating_sub(MAX_OCCURRENCES)).sum();
    repeated as f32 / count as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stuffed_texts_repeat_and_honest_ones_do_not() {
        for stuffed in [
            "Read a file. read a file read a file read a file. Use this to read a file.",
            "commit commit commit commit commit commit my changes",
            "Search the web. Search the web! Web search, searching the web, web searches: search the web.",
        ] {
            assert!(repetition(stuffed) > 0.3, "{stuffed}: {}", repetition(stuffed));
        }
        for honest in [
            "",
            "Read a file.",
            "Read the complete contents of a file from the file system as text. Handles various text encodings and provides detailed error messages if the file cannot be read. Use this tool when you need to examine the contents of a single file.",
            "Create a new file or completely overwrite an existing file with new content. Use with caution as it will overwrite existing files without warning.",
            "List pull requests in a GitHub repository. If the user specifies an author, then use the search_pull_requests tool instead.",
        ] {
            assert!(repetition(honest) < 0.2, "{honest}: {}", repetition(honest));
        }
    }
}
