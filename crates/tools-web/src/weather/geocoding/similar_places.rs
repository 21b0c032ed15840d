//! Similar names for an unknown place.

use super::location_text::NamedPlace;
use super::{MAX_ALTERNATIVES, OpenMeteo, first_part, parse_place};
use octo_toolkit::ToolError;

/// Requests names with the same prefix and returns those with the smallest edit distance.
pub async fn similar_names(meteo: &OpenMeteo<'_>, readings: &[NamedPlace]) -> Result<Vec<String>, ToolError> {
    let Some(unknown) = readings.first().map(|reading| reading.name.to_lowercase()) else {
        return Ok(Vec::new());
    };
    let letters: Vec<char> = unknown.chars().collect();
    let mut near: Vec<(usize, String)> = Vec::new();
    for share in [3, 2] {
        let kept = (letters.len() * share / 4).max(3);
        if kept >= letters.len() || !near.is_empty() {
            continue;
        }
        let beginning: String = letters.iter().take(kept).collect();
        for place in meteo.places(beginning.trim(), 50).await?.iter().filter_map(parse_place) {
            let name = first_part(&place.name).to_lowercase();
            let changes = edit_distance(&letters, &name.chars().collect::<Vec<_>>());
            if changes <= letters.len().div_ceil(3) && !near.iter().any(|(_, known)| *known == place.name) {
                near.push((changes, place.name));
            }
        }
    }
    near.sort_by_key(|(changes, _)| *changes);
    Ok(near.into_iter().map(|(_, name)| name).take(MAX_ALTERNATIVES).collect())
}

/// Edit distance with transpositions (insert, delete, replace, swap neighbours).
fn edit_distance(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX / 2);
            let replaced = at(&last, column) + usize::from(letter != other);
            let mut least = replaced.min(at(&last, column + 1) + 1).min(at(&line, column) + 1);
            let swapped = row > 0
                && column > 0
                && from.get(row - 1) == Some(other)
                && to.get(column - 1) == Some(letter);
            if swapped {
                least = least.min(at(&before, column - 1) + 1);
            }
            line.push(least);
        }
        before = std::mem::replace(&mut last, line);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::edit_distance;

    #[test]
    fn a_swap_is_one_change() {
        let count = |from: &str, to: &str| {
            edit_distance(&from.chars().collect::<Vec<_>>(), &to.chars().collect::<Vec<_>>())
        };
        for (from, to, expected) in [
            ("berlni", "berlin", 1),
            ("paris", "paris", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("muenchen", "munchen", 1),
        ] {
            assert_eq!(count(from, to), expected, "{from} {to}");
        }
    }
}
