//! "Did you mean": the most similar of some names.

/// Maximum characters of a name that are compared.
const MAX_CHARS: usize = 64;
/// Maximum candidates that are compared.
const MAX_CANDIDATES: usize = 2_000;

/// The most similar candidate within a third of the name's length. For names of up to three letters a changed
/// letter makes a different word: only swapped, missing or added letters count as typos.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters = name.chars().count();
    let limit = (letters / 3).max(1);
    let plausible = |candidate: &str| {
        letters > 3
            || is_subsequence(name, candidate)
            || is_subsequence(candidate, name)
            || is_anagram(name, candidate)
    };
    candidates
        .take(MAX_CANDIDATES)
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= limit && plausible(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns whether a word is a subsequence of another.
fn is_subsequence(word: &str, other: &str) -> bool {
    let mut letters = other.chars();
    word.chars().all(|letter| letters.any(|next| next == letter))
}

fn is_anagram(a: &str, b: &str) -> bool {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.to_lowercase().chars().collect();
        letters.sort_unstable();
        letters
    };
    sorted(a) == sorted(b)
}

/// Number of letters inserted, removed, changed or swapped with the next, over the first 64 characters.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let head = |text: &str| text.chars().take(MAX_CHARS).collect::<String>();
    strsim::osa_distance(&head(a), &head(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (left, right, expected) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
            ("port", "prot", 1),
            ("ü", "u", 1),
        ] {
            assert_eq!(edit_distance(left, right), expected, "{left} {right}");
        }
    }

    #[test]
    fn finds_the_close_and_leaves_the_far() {
        let names = ["time_now", "time_convert", "fs_read_text"];
        assert_eq!(nearest("time_nwo", names.into_iter()), Some("time_now"));
        assert_eq!(nearest("time-convert", names.into_iter()), Some("time_convert"));
        assert_eq!(nearest("browser", names.into_iter()), None);
    }

    #[test]
    fn short_names_are_not_taken_for_each_other() {
        let names = ["cwd", "as", "with", "env", "name", "line", "port"];
        let rows = [
            ("cmd", None),
            ("args", None),
            ("cdw", Some("cwd")),
            ("nam", Some("name")),
            ("lne", Some("line")),
            ("envs", Some("env")),
            ("lien", Some("line")),
            ("prot", Some("port")),
            ("id", None),
            ("wiht", Some("with")),
        ];
        for (name, wanted) in rows {
            assert_eq!(nearest(name, names.into_iter()), wanted, "{name}");
        }
    }
}
