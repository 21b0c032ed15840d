//! Passage search: the parts of a text that match a query best.

use super::Heading;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// A part of the page that matches a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Passage {
    /// Character offset, for `offset`.
    pub offset: usize,
    /// The heading above it; empty before the first one.
    pub heading: String,
    /// The passage, Markdown.
    pub text: String,
}

/// Minimum length of a passage; a shorter block is joined with the next one.
const MIN_PASSAGE_BYTES: usize = 200;
const MAX_PASSAGES: usize = 5;

/// Returns the best passages within a budget of characters, best first.
pub fn passages(markdown: &str, outline: &[Heading], query: &str, budget: usize) -> Vec<Passage> {
    let blocks = split_blocks(markdown);
    let query_words: Vec<String> = stemmed_words(query).collect();
    let mut rarity: HashMap<&str, f64> = HashMap::new();
    let counted: Vec<HashMap<String, f64>> = blocks
        .iter()
        .map(|(_, text)| {
            let mut counts = HashMap::new();
            for word in stemmed_words(text).filter(|word| query_words.contains(word)) {
                *counts.entry(word).or_insert(0.0) += 1.0;
            }
            counts
        })
        .collect();
    for word in &query_words {
        let with = counted.iter().filter(|counts| counts.contains_key(word)).count() as f64;
        rarity.insert(word, (1.0 + (blocks.len() as f64 - with + 0.5) / (with + 0.5)).ln());
    }
    let phrase = query_words.join(" ");
    let mut scored: Vec<(f64, usize)> = counted
        .iter()
        .enumerate()
        .filter(|(_, counts)| !counts.is_empty())
        .map(|(at, counts)| {
            let text = blocks.get(at).map_or("", |(_, text)| *text);
            let length = text.len() as f64 / 600.0;
            let score: f64 = counts
                .iter()
                .map(|(word, count)| {
                    rarity.get(word.as_str()).unwrap_or(&0.0) * count * 2.2 / (count + 0.6 + 0.6 * length)
                })
                .sum();
            let whole =
                query_words.len() > 1 && stemmed_words(text).collect::<Vec<_>>().join(" ").contains(&phrase);
            (if whole { score * 1.5 } else { score }, at)
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    // A match on a common word only is not relevant.
    let least = scored.first().map_or(0.0, |(best, _)| best * 0.4);
    let mut left = budget;
    let mut chosen: Vec<Passage> = Vec::new();
    for (_, at) in scored.into_iter().filter(|(score, _)| *score >= least) {
        let Some((offset, text)) = blocks.get(at) else { continue };
        let size = text.trim().chars().count();
        if chosen.len() >= MAX_PASSAGES || (size > left && !chosen.is_empty()) {
            continue;
        }
        let (skipped, text) = match size > left {
            true => best_window(text, &query_words, left),
            false => (0, text.trim().to_owned()),
        };
        left = left.saturating_sub(text.chars().count());
        let offset = offset + skipped;
        let heading = outline.iter().rev().find(|heading| heading.offset <= offset);
        let heading = heading.map(|heading| heading.text.clone()).unwrap_or_default();
        chosen.push(Passage { offset, heading, text });
    }
    chosen
}

/// Window of a block that exceeds the budget: the lines around the one with the rarest query words, below the header of
/// their table, and the number of characters omitted before them.
fn best_window(block: &str, query_words: &[String], budget: usize) -> (usize, String) {
    let mut lines: Vec<BlockLine> = Vec::new();
    let mut start = 0;
    for text in block.split_inclusive('\n') {
        let found = stemmed_words(text).filter(|word| query_words.contains(word)).collect();
        lines.push(BlockLine { start, text, matches: found });
        start += text.chars().count();
    }
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in lines.iter().flat_map(|line| &line.matches) {
        *counts.entry(word).or_default() += 1;
    }
    let rarity = |word: &String| {
        counts.get(word.as_str()).map_or(0.0, |count| (1.0 + lines.len() as f64 / *count as f64).ln())
    };
    let scores = lines.iter().map(|line| (line.start, line.matches.iter().map(rarity).sum::<f64>()));
    let best = scores.rev().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(start, _)| start);
    let earliest = best.saturating_sub(budget / 4);
    let first = lines.iter().position(|line| line.start >= earliest).unwrap_or(0);
    let header = table_header(lines.get(..first).unwrap_or_default(), lines.get(first));
    let header = if header.chars().count() <= budget / 4 { header } else { String::new() };
    let first = lines.get(first).map_or(0, |line| line.start);
    let room = budget - header.chars().count();
    let rest: String = block.chars().skip(first).take(room).collect();
    (first, format!("{header}{}", rest.trim_end()))
}

/// A line of a block, its character offset, and the query words in it.
struct BlockLine<'a> {
    start: usize,
    text: &'a str,
    matches: HashSet<String>,
}

/// Header and separator lines of the table that a row belongs to.
fn table_header(before: &[BlockLine<'_>], row: Option<&BlockLine<'_>>) -> String {
    let is_row = |line: &BlockLine<'_>| line.text.starts_with('|');
    if !row.is_some_and(is_row) {
        return String::new();
    }
    let table = before.iter().rev().take_while(|line| is_row(line)).count();
    let table = before.get(before.len() - table..).unwrap_or_default();
    match table {
        [names, rule, ..] if rule.text.starts_with("|---") || rule.text.starts_with("| ---") => {
            format!("{}{}", names.text, rule.text)
        }
        _ => String::new(),
    }
}

/// Words in lower case, without the plural ending.
fn stemmed_words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(|word| {
        let word = word.to_lowercase();
        let long = word.chars().count() > 3 && !word.ends_with("ss");
        if long { word.strip_suffix('s').map_or(word.clone(), str::to_owned) } else { word }
    })
}

/// Paragraphs with their character offsets. Code and tables are not split, nor is a sentence that continues on the next
/// page of a PDF.
fn split_blocks(markdown: &str) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    let (mut start, mut start_chars, mut chars, mut at) = (0, 0, 0, 0);
    let (mut fenced, mut carried) = (false, false);
    let lines: Vec<&str> = markdown.split_inclusive('\n').collect();
    // Whether each line, or the next line that is not blank, starts a page.
    let mut before_page = vec![false; lines.len()];
    for (at, line) in lines.iter().enumerate().rev() {
        let later = before_page.get(at + 1).copied().unwrap_or(false);
        if let Some(known) = before_page.get_mut(at) {
            *known = is_page_heading(line) || (line.trim().is_empty() && later);
        }
    }
    let mut last_line = "";
    for (number, line) in lines.iter().enumerate() {
        let heading = !fenced && line.starts_with('#');
        let over = before_page.get(number).is_some_and(|before| *before) && is_unfinished(last_line);
        carried = over || (carried && line.trim().is_empty());
        if !line.trim().is_empty() && !is_page_heading(line) {
            last_line = line;
        }
        if heading && !over && start < at {
            all.push((start_chars, markdown.get(start..at).unwrap_or("")));
            (start, start_chars) = (at, chars);
        }
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
        }
        at += line.len();
        chars += line.chars().count();
        if line.trim().is_empty() && !fenced && !carried && at - start >= MIN_PASSAGE_BYTES {
            all.push((start_chars, markdown.get(start..at).unwrap_or("")));
            (start, start_chars) = (at, chars);
        }
    }
    if start < markdown.len() {
        all.push((start_chars, markdown.get(start..).unwrap_or("")));
    }
    all
}

/// Whether a line is the heading of a PDF page.
fn is_page_heading(line: &str) -> bool {
    let number = line.trim().strip_prefix("## Page ");
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

fn is_unfinished(line: &str) -> bool {
    line.trim_end().ends_with(|last: char| last.is_alphanumeric() || ",;-–(".contains(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_document::outline;

    #[test]
    fn the_passage_that_says_it_is_found_with_its_place() {
        let filler =
            "Nothing of interest stands in this paragraph, which is long enough to be one of its own. "
                .repeat(4);
        let text = format!(
            "# Start\n\n{filler}\n\n# Fuel\n\nThe tank holds 47 litres of petrol.\n\n{filler}\n\n# End\n\n{filler}\n"
        );
        let found = passages(&text, &outline(&text), "how many litres in tanks", 5000);
        assert_eq!(found[0].heading, "Fuel");
        assert!(found[0].text.contains("47 litres"));
        let there: String = text.chars().skip(found[0].offset).take(6).collect();
        assert_eq!(there, "# Fuel");
        assert!(passages(&text, &outline(&text), "zeppelin", 5000).is_empty());
    }

    #[test]
    fn passages_keep_to_their_budget() {
        let text = "petrol and more petrol in a long line of words. \n\n".repeat(500);
        let found = passages(&text, &[], "petrol", 1000);
        let size: usize = found.iter().map(|one| one.text.chars().count()).sum();
        assert!((200..=1000).contains(&size), "{size}");
    }

    #[test]
    fn the_best_come_first_and_are_few() {
        let filler = "Nothing of interest stands in this paragraph, which is long enough. ".repeat(4);
        let mut text: String =
            (0..30).map(|at| format!("Petrol is named in paragraph {at}. {filler}\n\n")).collect();
        text.push_str(&format!("The petrol tank holds 47 litres of petrol. {filler}\n\n"));
        let found = passages(&text, &[], "petrol tank litres", 50_000);
        assert!(found[0].text.starts_with("The petrol tank holds 47 litres"), "{found:?}");
        assert!(found.len() <= 5, "{}", found.len());
    }

    #[test]
    fn a_sentence_that_goes_on_at_the_next_page_is_one_passage() {
        let filler = "Words that fill the page up to its end, as they do in every manual. ".repeat(6);
        let text = format!(
            "## Page 1\n\n{filler}The size of the buffer can be set. The\n\n## Page 2\n\ndefault is 4 gigabytes.\n\n{filler}\n\n## Page \
             3\n\n{filler}\n"
        );
        let found = passages(&text, &outline(&text), "default size of the buffer", 3000);
        assert!(found[0].text.contains("The\n\n## Page 2\n\ndefault is 4 gigabytes."), "{found:?}");
        assert!(found.iter().all(|one| !one.text.contains("## Page 3") || one.text.starts_with("## Page 3")));
    }

    #[test]
    fn of_a_long_block_the_part_that_matches_is_shown() {
        let text: String = (0..500)
            .map(|at| format!("| row {at} | {} |\n", if at == 400 { "zeppelin" } else { "x" }))
            .collect();
        let found = passages(&text, &[], "zeppelin", 300);
        assert!(found[0].text.contains("row 400 | zeppelin"), "{found:?}");
        let there: String = text.chars().skip(found[0].offset).take(5).collect();
        assert!(there.starts_with("| row") && found[0].text.chars().count() <= 300, "{found:?}");
    }

    #[test]
    fn of_a_long_table_the_row_that_matches_is_shown_below_its_header() {
        let head = "# Rain by station\n\nIn a year.\n\n| Station | Rain |\n|---|---|\n";
        let rows: String = (0..2_000).map(|at| format!("| Station {at} | {} mm |\n", at * 3)).collect();
        let found = passages(&format!("{head}{rows}"), &[], "rain of station 1234", 400);
        assert!(found[0].text.starts_with("| Station | Rain |\n|---|---|\n| Station 12"), "{found:?}");
        assert!(found[0].text.contains("| Station 1234 | 3702 mm |"), "{found:?}");
        assert!(found[0].text.chars().count() <= 400, "{found:?}");
        let wide = format!("| {} |\n|---|\n{rows}", "name ".repeat(100));
        let found = passages(&wide, &[], "station 1234", 400);
        assert!(found[0].text.contains("| Station 1234 |"), "{found:?}");
        assert!(found[0].text.chars().count() <= 400, "{found:?}");
    }
}
