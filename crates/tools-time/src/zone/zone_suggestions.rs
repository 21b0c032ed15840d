//! Spelling suggestions.

/// The closest words, best first; none if nothing is close.
pub fn closest_words<'a>(
    wanted: &str,
    among: impl Iterator<Item = &'a str>,
    max_words: usize,
) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase().replace(' ', "_");
    let limit = (wanted.chars().count() / 3).clamp(1, 4);
    let mut scored: Vec<(usize, &str)> = among
        .filter_map(|word| edit_score(&wanted, &word.to_lowercase(), limit).map(|score| (score, word)))
        .collect();
    scored.sort_unstable();
    scored.into_iter().take(max_words).map(|(_, word)| word).collect()
}

/// Edit distance to the whole name or to its last part; a name that contains the text counts as one edit.
fn edit_score(wanted: &str, word: &str, limit: usize) -> Option<usize> {
    let last = word.rsplit('/').next().unwrap_or(word);
    let inside = (wanted.len() >= 4 && word.contains(wanted)).then_some(1);
    [inside, distance_within(wanted, word, limit), distance_within(wanted, last, limit)]
        .into_iter()
        .flatten()
        .min()
}

/// Edit distance up to a limit; words of very different length are not compared.
fn distance_within(left: &str, right: &str, limit: usize) -> Option<usize> {
    if left.chars().count().abs_diff(right.chars().count()) > limit {
        return None;
    }
    Some(octo_toolkit::edit_distance(left, right)).filter(|edits| *edits <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_first() {
        let words = ["tomorrow", "today", "yesterday", "Asia/Tokyo"];
        assert_eq!(closest_words("tommorow", words.into_iter(), 3), ["tomorrow"]);
        assert_eq!(closest_words("tokio", words.into_iter(), 3), ["Asia/Tokyo"]);
        assert!(closest_words("xylophone", words.into_iter(), 3).is_empty());
    }
}
