//! Tokenizer of names, paths and questions, with stemming.

use octo_search::stem;

/// Words without meaning for the search.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "all",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "been",
    "by",
    "can",
    "do",
    "does",
    "for",
    "from",
    "given",
    "has",
    "have",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "me",
    "my",
    "of",
    "on",
    "one",
    "or",
    "our",
    "please",
    "s",
    "so",
    "some",
    "specific",
    "specified",
    "that",
    "the",
    "their",
    "them",
    "there",
    "these",
    "this",
    "to",
    "us",
    "using",
    "want",
    "was",
    "we",
    "what",
    "when",
    "where",
    "which",
    "with",
    "would",
    "you",
    "your",
];

/// Words of people, and the words of documents for them. Few: with GitHub's document they find four more of fifty
/// questions, and a longer list found no more.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("add", &["create"]),
    ("attach", &["upload"]),
    ("branch", &["ref"]),
    ("change", &["update", "edit"]),
    ("delete", &["remove"]),
    ("drop", &["delete", "remove"]),
    ("edit", &["update"]),
    ("fetch", &["get"]),
    ("find", &["search", "list"]),
    ("make", &["create"]),
    ("modify", &["update"]),
    ("new", &["create"]),
    ("open", &["create"]),
    ("org", &["organization"]),
    ("organisation", &["organization"]),
    ("people", &["user", "member"]),
    ("person", &["user"]),
    ("pr", &["pull", "request"]),
    ("remove", &["delete"]),
    ("repo", &["repository"]),
    ("retrieve", &["get"]),
    ("show", &["get", "list"]),
    ("stop", &["cancel"]),
    ("view", &["get"]),
    ("write", &["create"]),
];

/// Stemmed words of a text. Splits camelCase and snake_case.
pub(crate) fn tokenize(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut previous = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let next_small = letters.peek().is_some_and(|next| next.is_lowercase());
        let hump =
            letter.is_uppercase() && (previous.is_lowercase() || (previous.is_uppercase() && next_small));
        if hump || !letter.is_alphanumeric() {
            finish(&mut words, &mut word);
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        previous = letter;
    }
    finish(&mut words, &mut word);
    words
}

fn finish(words: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() && word.len() <= 40 && !STOP_WORDS.contains(&word.as_str()) {
        words.push(stem(word));
    }
    word.clear();
}

/// Synonyms of a stemmed word.
pub(crate) fn synonyms(word: &str) -> Vec<String> {
    let row = SYNONYMS.iter().find(|(said, _)| stem(said) == word);
    row.map(|(_, meant)| meant.iter().map(|word| stem(word)).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_words() {
        for (text, expected) in [
            ("getUserByID", &["get", "user", "id"][..]),
            ("pulls/list-files", &["pull", "list", "file"]),
            ("/repos/{owner}/{repo}/issues", &["repo", "owner", "repo", "issu"]),
            ("HTTPServer_config v2", &["http", "server", "config", "v2"]),
            ("How do I list the branches?", &["list", "branch"]),
        ] {
            assert_eq!(tokenize(text), expected, "{text}");
        }
    }

    #[test]
    fn endings_do_not_matter() {
        for group in [
            &["delete", "deletes", "deleted", "deleting"][..],
            &["repository", "repositories"],
            &["branch", "branches"],
            &["stop", "stopped", "stopping"],
            &["issue", "issues"],
            &["merge", "merging", "merged"],
            &["install", "installing", "installed"],
        ] {
            let stems: std::collections::HashSet<String> = group.iter().map(|word| stem(word)).collect();
            assert_eq!(stems.len(), 1, "{group:?} {stems:?}");
        }
        assert_ne!(stem("status"), stem("state"));
        assert_ne!(stem("user"), stem("use"));
    }
}
