//! Locates the lines of a hunk.

/// Position of a hunk: index of its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkPosition {
    pub at: usize,
    /// Matched only with trailing whitespace ignored.
    pub ignored_whitespace: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocateError {
    NotFound,
    /// At least two positions match; these are the first.
    Ambiguous(usize, usize),
}

/// Tries the stated position, then a unique exact match elsewhere, then a match with trailing whitespace ignored.
/// `floor` is the end of the previous hunk. Lines come without their endings.
pub fn locate(
    file: &[&str],
    old: &[&str],
    likely: &[usize],
    floor: usize,
) -> Result<HunkPosition, LocateError> {
    let exact = |left: &str, right: &str| left == right;
    let loose = |left: &str, right: &str| left.trim_end() == right.trim_end();
    search(file, old, likely, floor, &exact).map(|at| HunkPosition { at, ignored_whitespace: false }).or_else(
        |lost| match lost {
            LocateError::Ambiguous(..) => Err(lost),
            LocateError::NotFound => search(file, old, likely, floor, &loose)
                .map(|at| HunkPosition { at, ignored_whitespace: true }),
        },
    )
}

fn search(
    file: &[&str],
    old: &[&str],
    likely: &[usize],
    floor: usize,
    same: &dyn Fn(&str, &str) -> bool,
) -> Result<usize, LocateError> {
    let fits = |at: usize| {
        let here = file.get(at..).and_then(|rest| rest.get(..old.len()));
        here.is_some_and(|here| here.iter().zip(old).all(|(left, right)| same(left, right)))
    };
    if let Some(at) = likely.iter().find(|at| **at >= floor && fits(**at)) {
        return Ok(*at);
    }
    match places(file, old, floor, same).as_slice() {
        [only] => Ok(*only),
        [first, second, ..] => Err(LocateError::Ambiguous(*first, *second)),
        [] => Err(LocateError::NotFound),
    }
}

/// The first two matches, in one pass (Knuth, Morris and Pratt): a hunk may be long, and lines may repeat.
fn places(file: &[&str], old: &[&str], floor: usize, same: &dyn Fn(&str, &str) -> bool) -> Vec<usize> {
    let is = |at: usize, line: &str| old.get(at).is_some_and(|wanted| same(line, wanted));
    // KMP failure table: longest proper prefix of the hunk that is also a suffix of its first lines.
    let mut again: Vec<usize> = Vec::with_capacity(old.len());
    let next = |again: &[usize], mut matched: usize, line: &str| {
        while matched > 0 && !is(matched, line) {
            matched = again.get(matched - 1).copied().unwrap_or_default();
        }
        matched + usize::from(is(matched, line))
    };
    for (at, line) in old.iter().enumerate() {
        let matched = again.last().copied().unwrap_or_default();
        again.push(if at == 0 { 0 } else { next(&again, matched, line) });
    }
    let (mut found, mut matched) = (Vec::new(), 0);
    for (at, line) in file.iter().enumerate().skip(floor) {
        matched = next(&again, matched, line);
        if matched == old.len() && !old.is_empty() {
            found.push(at + 1 - matched);
        }
        if found.len() == 2 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_hunks_belong() {
        let file = ["a", "x", "b", "x", "c  ", "a"];
        let found = |at, loose| Ok(HunkPosition { at, ignored_whitespace: loose });
        let rows = [
            (vec!["x"], vec![3], 0, found(3, false)),
            (vec!["x"], vec![0], 0, Err(LocateError::Ambiguous(1, 3))),
            (vec!["b", "x"], vec![0], 0, found(2, false)),
            (vec!["c"], vec![], 0, found(4, true)),
            (vec!["a"], vec![], 1, found(5, false)),
            (vec!["x", "c", "a", "z"], vec![3], 0, Err(LocateError::NotFound)),
        ];
        for (old, likely, floor, wanted) in rows {
            assert_eq!(locate(&file, &old, &likely, floor), wanted, "{old:?}");
        }
    }

    #[test]
    fn any_number_may_be_said() {
        for likely in [usize::MAX, usize::MAX - 1] {
            assert_eq!(
                locate(&["a", "b"], &["b"], &[likely], 0),
                Ok(HunkPosition { at: 1, ignored_whitespace: false })
            );
        }
    }

    #[test]
    fn places_that_overlap_are_two_and_those_that_begin_anew_are_found() {
        assert_eq!(locate(&["x"; 3], &["x", "x"], &[], 0), Err(LocateError::Ambiguous(0, 1)));
        let file = ["a", "b", "a", "b", "a", "c"];
        assert_eq!(
            locate(&file, &["a", "b", "a", "c"], &[], 0),
            Ok(HunkPosition { at: 2, ignored_whitespace: false })
        );
        assert_eq!(
            locate(&file, &["b ", "a", "b", "a "], &[], 0),
            Ok(HunkPosition { at: 1, ignored_whitespace: true })
        );
        assert_eq!(locate(&file, &["b", "a"], &[], 2), Ok(HunkPosition { at: 3, ignored_whitespace: false }));
    }

    #[test]
    fn lines_that_are_all_alike_are_searched_quickly() {
        let file = vec!["x"; 400_000];
        let old: Vec<&str> = std::iter::repeat_n("x", 20_000).chain(["y"]).collect();
        let began = std::time::Instant::now();
        assert_eq!(locate(&file, &old, &[0], 0), Err(LocateError::NotFound));
        assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
    }
}
