//! The known word that a mistyped one was probably meant to be.

/// The closest word, unless all are further away than a third of its length.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let far = word.chars().count().div_ceil(3);
    let close = known.map(|other| (distance(word, other), other)).filter(|(distance, _)| *distance <= far);
    close.min().map(|(_, other)| other)
}

/// How many letters must be put in, taken out or changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, letter) in a.chars().enumerate() {
        let mut corner = at;
        let mut left = at + 1;
        for (other, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let changed = corner + usize::from(letter != *other);
            corner = *cell;
            left = changed.min(*cell + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, far) in
            [("", "abc", 3), ("abc", "", 3), ("port", "prot", 2), ("kitten", "sitting", 3), ("a", "a", 0)]
        {
            assert_eq!(distance(a, b), far, "{a} {b}");
        }
        assert_eq!(nearest("prot", ["host", "port"].into_iter()), Some("port"));
        assert_eq!(nearest("zebra", ["host", "port"].into_iter()), None);
        assert_eq!(nearest("workspce", ["workspace", "port"].into_iter()), Some("workspace"));
    }
}
