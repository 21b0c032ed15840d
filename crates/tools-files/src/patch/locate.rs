//! Finds the lines that a hunk is about.

/// A place for a hunk: the index of its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub at: usize,
    /// Only after blanks at line ends were left out of account.
    pub loose: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    Nowhere,
    /// At least two places fit; these are the first.
    Several(usize, usize),
}

/// Exactly where it is said to be; else exactly, at one other place; else the same but for blanks at line ends.
/// `floor` is where the hunk before has ended. Lines come without their ends.
pub fn locate(file: &[&str], old: &[&str], likely: &[usize], floor: usize) -> Result<Found, Lost> {
    let exact = |left: &str, right: &str| left == right;
    let loose = |left: &str, right: &str| left.trim_end() == right.trim_end();
    search(file, old, likely, floor, &exact).map(|at| Found { at, loose: false }).or_else(|lost| match lost {
        Lost::Several(..) => Err(lost),
        Lost::Nowhere => search(file, old, likely, floor, &loose).map(|at| Found { at, loose: true }),
    })
}

fn search(
    file: &[&str],
    old: &[&str],
    likely: &[usize],
    floor: usize,
    same: &dyn Fn(&str, &str) -> bool,
) -> Result<usize, Lost> {
    let fits = |at: usize| {
        let here = file.get(at..at + old.len());
        here.is_some_and(|here| here.iter().zip(old).all(|(left, right)| same(left, right)))
    };
    if let Some(at) = likely.iter().find(|at| **at >= floor && fits(**at)) {
        return Ok(*at);
    }
    let mut places = (floor..file.len()).filter(|at| fits(*at));
    match (places.next(), places.next()) {
        (Some(only), None) => Ok(only),
        (Some(first), Some(second)) => Err(Lost::Several(first, second)),
        _ => Err(Lost::Nowhere),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_hunks_belong() {
        let file = ["a", "x", "b", "x", "c  ", "a"];
        let found = |at, loose| Ok(Found { at, loose });
        let rows = [
            (vec!["x"], vec![3], 0, found(3, false)),
            (vec!["x"], vec![0], 0, Err(Lost::Several(1, 3))),
            (vec!["b", "x"], vec![0], 0, found(2, false)),
            (vec!["c"], vec![], 0, found(4, true)),
            (vec!["a"], vec![], 1, found(5, false)),
            (vec!["x", "c", "a", "z"], vec![3], 0, Err(Lost::Nowhere)),
        ];
        for (old, likely, floor, wanted) in rows {
            assert_eq!(locate(&file, &old, &likely, floor), wanted, "{old:?}");
        }
    }
}
