//! Finds the region most similar to a text that was not found, and the first line that differs. Linear in the
//! file size.

use crate::content::text_lines;
use similar::TextDiff;
use std::collections::HashMap;
use std::time::Duration;

/// Lines that occur more often do not help to locate the text.
const MAX_LINE_OCCURRENCES: usize = 50;
/// Maximum number of regions that are compared in full.
const MAX_CANDIDATES: usize = 4;
/// Longer texts are compared by lines, not by characters.
const MAX_CHAR_DIFF_LEN: usize = 4_000;
const DIFF_TIMEOUT: Duration = Duration::from_millis(25);
/// Below this it is a different text.
const MIN_SIMILARITY: f32 = 0.35;

#[derive(Debug, Clone, PartialEq)]
pub struct FuzzyMatch {
    /// Line numbers in the file, from 1, both included.
    pub first: usize,
    pub last: usize,
    /// Percentage, 0 to 100.
    pub similarity: u32,
    pub divergence: Option<Divergence>,
}

/// The first line that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    pub line: usize,
    /// Absent if the file ends before it.
    pub found: Option<String>,
    pub expected: String,
}

/// Region of the file that is most similar to the wanted lines.
pub fn find_nearest(file: &[&str], wanted: &[&str]) -> Option<FuzzyMatch> {
    // Empty lines around the text carry no information and shift the comparison.
    let blank = |line: &&&str| line.trim().is_empty();
    let skip = wanted.iter().take_while(blank).count();
    let tail = wanted.iter().rev().take_while(blank).count();
    let wanted = wanted.get(skip..wanted.len().saturating_sub(tail)).filter(|wanted| !wanted.is_empty())?;
    let starts = by_lines(file, wanted).or_else(|| by_pairs(file, wanted))?;
    let scored = starts.into_iter().map(|start| {
        let region = file.get(start..(start + wanted.len()).min(file.len())).unwrap_or_default();
        (start, region.len(), ratio(region, wanted))
    });
    let (start, length, ratio) =
        scored.max_by(|left, right| left.2.total_cmp(&right.2).then(right.0.cmp(&left.0)))?;
    (ratio >= MIN_SIMILARITY && length > 0).then(|| FuzzyMatch {
        first: start + 1,
        last: start + length,
        // A near match must not be reported as identical.
        similarity: ((ratio * 100.0) as u32).min(99),
        divergence: divergence(file, wanted, start),
    })
}

/// Lines that are equal except for whitespace vote for the start of the text.
fn by_lines(file: &[&str], wanted: &[&str]) -> Option<Vec<usize>> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for line in wanted.iter().map(|line| line.trim()).filter(|line| line.len() > 1) {
        places.entry(line).or_default();
    }
    for (at, line) in file.iter().enumerate() {
        if let Some(found) = places.get_mut(line.trim()).filter(|found| found.len() <= MAX_LINE_OCCURRENCES) {
            found.push(at);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (offset, line) in wanted.iter().enumerate() {
        for at in places.get(line.trim()).into_iter().flatten() {
            *votes.entry(at.saturating_sub(offset)).or_default() += line.trim().len();
        }
    }
    best(votes.into_iter())
}

/// Without a common line, character bigrams determine the likeliest line for the longest wanted one.
fn by_pairs(file: &[&str], wanted: &[&str]) -> Option<Vec<usize>> {
    let (offset, anchor) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let mut known = vec![false; 1 << 16];
    let mut total = 0_usize;
    for pair in pairs(anchor.trim()) {
        if let Some(slot) = known.get_mut(pair) {
            *slot = true;
            total += 1;
        }
    }
    let scores = file.iter().enumerate().map(|(at, line)| {
        let (hits, length) = pairs(line.trim()).fold((0_usize, 0_usize), |(hits, length), pair| {
            (hits + usize::from(known.get(pair).copied().unwrap_or(false)), length + 1)
        });
        (at.saturating_sub(offset), 2000 * hits.min(total) / (total + length).max(1))
    });
    best(scores.filter(|(_, score)| *score > 700))
}

fn pairs(line: &str) -> impl Iterator<Item = usize> {
    let bytes = line.as_bytes();
    bytes.iter().zip(bytes.iter().skip(1)).map(|(left, right)| usize::from(*left) << 8 | usize::from(*right))
}

fn best(scores: impl Iterator<Item = (usize, usize)>) -> Option<Vec<usize>> {
    let mut scores: Vec<(usize, usize)> = scores.collect();
    scores.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(&right.0)));
    let starts: Vec<usize> = scores.into_iter().take(MAX_CANDIDATES).map(|(start, _)| start).collect();
    (!starts.is_empty()).then_some(starts)
}

fn ratio(region: &[&str], wanted: &[&str]) -> f32 {
    let mut config = TextDiff::configure();
    let config = config.timeout(DIFF_TIMEOUT);
    let (left, right) = (region.join("\n"), wanted.join("\n"));
    if left.len() + right.len() <= MAX_CHAR_DIFF_LEN {
        return config.diff_chars(left.as_str(), right.as_str()).ratio();
    }
    config.diff_slices(region, wanted).ratio()
}

/// The wanted text may start and end within a line.
fn divergence(file: &[&str], wanted: &[&str], start: usize) -> Option<Divergence> {
    let last = wanted.len() - 1;
    wanted.iter().enumerate().find_map(|(offset, line)| {
        let found = file.get(start + offset);
        let same = found.is_some_and(|found| match offset {
            0 if last == 0 => found.contains(line),
            0 => found.ends_with(line),
            end if end == last => found.starts_with(line),
            _ => found == line,
        });
        let differs = || Divergence {
            line: start + offset + 1,
            found: found.map(|line| (*line).to_owned()),
            expected: (*line).to_owned(),
        };
        (!same).then(differs)
    })
}

impl Divergence {
    /// Describes the difference if the two lines differ only in whitespace.
    fn blanks(&self) -> Option<&'static str> {
        let found = self.found.as_deref()?;
        let same = |left: &str, right: &str| left.split_whitespace().eq(right.split_whitespace());
        if !same(found, &self.expected) {
            return None;
        }
        let indent =
            |line: &str| line.get(..line.len() - line.trim_start().len()).unwrap_or_default().to_owned();
        let (ours, theirs) = (indent(found), indent(&self.expected));
        Some(match () {
            () if found.trim_end() == self.expected.trim_end() => "only in blanks at the end of the line",
            () if ours.contains('\t') != theirs.contains('\t') => {
                "only in tabs and spaces of the indentation"
            }
            () if ours != theirs => "only in the depth of the indentation",
            () => "only in blanks within the line",
        })
    }

    /// One sentence: location, actual text, expected text. `whose` names the expecting text.
    pub fn describe(&self, whose: &str) -> String {
        let wanted = text_lines::quote_line(&self.expected);
        let Some(found) = &self.found else {
            return format!("The file ends before line {}, where {whose} has {wanted}.", self.line);
        };
        let how = self.blanks().map(|how| format!(" (they differ {how})")).unwrap_or_default();
        format!("Line {} is {}, {whose} has {wanted}{how}.", self.line, text_lines::quote_line(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(file: &str, wanted: &str) -> Option<FuzzyMatch> {
        find_nearest(&file.lines().collect::<Vec<_>>(), &wanted.lines().collect::<Vec<_>>())
    }

    #[test]
    fn the_first_diverging_line_is_named() {
        let file = "fn a() {\n    one();\n    two();\n}\n\nfn b() {\n    three();\n}\n";
        let found = near(file, "fn a() {\n    one();\n    tow();\n}").unwrap();
        assert_eq!((found.first, found.last), (1, 4));
        assert!(found.similarity > 80 && found.similarity < 100);
        let differs = found.divergence.unwrap();
        assert_eq!(differs.describe("old_text"), "Line 3 is \"    two();\", old_text has \"    tow();\".");
    }

    #[test]
    fn differences_in_blanks_are_named() {
        let rows = [
            ("\tlet x = 1;", "    let x = 1;", "only in tabs and spaces of the indentation"),
            ("  let x = 1;", "    let x = 1;", "only in the depth of the indentation"),
            ("let x = 1;  ", "let x = 1;", "only in blanks at the end of the line"),
            ("let x  = 1;", "let x = 1;", "only in blanks within the line"),
        ];
        for (found, wanted, how) in rows {
            let differs = Divergence { line: 1, found: Some(found.to_owned()), expected: wanted.to_owned() };
            assert_eq!(differs.blanks(), Some(how), "{found:?}");
        }
    }

    #[test]
    fn a_single_line_with_a_typing_error_is_found() {
        let file = (0..1000).map(|n| format!("let value_{n} = compute({n});\n")).collect::<String>();
        let file = file.replace("compute(500)", "calculate_total(500)");
        let found = near(&file, "let value_500 = calculate_totl(500);").unwrap();
        assert_eq!(found.first, 501);
    }

    #[test]
    fn another_text_is_not_near() {
        assert_eq!(near("alpha\nbeta\n", "zzzz qqqq xxxx"), None);
        assert_eq!(near("", "zzzz"), None);
        assert_eq!(near("alpha", "\n\n"), None);
    }
}
