//! "Did you mean": the closest of some names.

/// The closest candidate within a third of the name's length.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = name.chars().count() / 3 + 1;
    candidates
        .take(2_000)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance over the first 64 characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (y, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let cost = (diagonal + usize::from(x != *y)).min(left + 1).min(*cell + 1);
            diagonal = *cell;
            *cell = cost;
            left = cost;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_close_and_leaves_the_far() {
        let names = ["time_now", "time_convert", "fs_read_text"];
        assert_eq!(nearest("time_nwo", names.into_iter()), Some("time_now"));
        assert_eq!(nearest("time-convert", names.into_iter()), Some("time_convert"));
        assert_eq!(nearest("browser", names.into_iter()), None);
    }
}
