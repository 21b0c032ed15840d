//! The passages of a text that answer a query best.

use super::Heading;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// A part of the page that matches a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Passage {
    /// Character it begins at, for `offset`.
    pub offset: usize,
    /// The heading it stands under; empty before the first one.
    pub heading: String,
    /// The passage, Markdown.
    pub text: String,
}

/// Passages are blocks of text; those shorter than this are joined with what follows.
const SHORTEST: usize = 200;
const MOST: usize = 20;

/// The best passages within a budget of characters, in the order of the text.
pub fn passages(markdown: &str, outline: &[Heading], query: &str, budget: usize) -> Vec<Passage> {
    let blocks = blocks(markdown);
    let wanted: Vec<String> = words(query).collect();
    let mut rarity: HashMap<&str, f64> = HashMap::new();
    let counted: Vec<HashMap<String, f64>> = blocks
        .iter()
        .map(|(_, text)| {
            let mut counts = HashMap::new();
            for word in words(text).filter(|word| wanted.contains(word)) {
                *counts.entry(word).or_insert(0.0) += 1.0;
            }
            counts
        })
        .collect();
    for word in &wanted {
        let with = counted.iter().filter(|counts| counts.contains_key(word)).count() as f64;
        rarity.insert(word, (1.0 + (blocks.len() as f64 - with + 0.5) / (with + 0.5)).ln());
    }
    let phrase = wanted.join(" ");
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
            let whole = wanted.len() > 1 && words(text).collect::<Vec<_>>().join(" ").contains(&phrase);
            (if whole { score * 1.5 } else { score }, at)
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    // What only shares a little word with the query is no answer to it.
    let least = scored.first().map_or(0.0, |(best, _)| best * 0.4);
    let mut left = budget;
    let mut chosen: Vec<usize> = Vec::new();
    for (_, at) in scored.into_iter().filter(|(score, _)| *score >= least).take(MOST) {
        let size = blocks.get(at).map_or(0, |(_, text)| text.chars().count());
        if size > left && !chosen.is_empty() {
            continue;
        }
        left = left.saturating_sub(size);
        chosen.push(at);
    }
    chosen.sort_unstable();
    chosen
        .into_iter()
        .filter_map(|at| blocks.get(at))
        .map(|(offset, text)| {
            let heading = outline.iter().rev().find(|heading| heading.offset <= *offset);
            Passage {
                offset: *offset,
                heading: heading.map(|heading| heading.text.clone()).unwrap_or_default(),
                text: text.trim().chars().take(budget).collect(),
            }
        })
        .collect()
}

/// Words in lower case, without a plural's last letter.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(|word| {
        let word = word.to_lowercase();
        let long = word.chars().count() > 3 && !word.ends_with("ss");
        if long { word.strip_suffix('s').map_or(word.clone(), str::to_owned) } else { word }
    })
}

/// Paragraphs with the character each begins at; code and tables stay whole.
fn blocks(markdown: &str) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    let (mut start, mut start_chars, mut chars, mut at) = (0, 0, 0, 0);
    let mut fenced = false;
    for line in markdown.split_inclusive('\n') {
        let heading = !fenced && line.starts_with('#');
        if heading && start < at {
            all.push((start_chars, markdown.get(start..at).unwrap_or("")));
            (start, start_chars) = (at, chars);
        }
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
        }
        at += line.len();
        chars += line.chars().count();
        if line.trim().is_empty() && !fenced && at - start >= SHORTEST {
            all.push((start_chars, markdown.get(start..at).unwrap_or("")));
            (start, start_chars) = (at, chars);
        }
    }
    if start < markdown.len() {
        all.push((start_chars, markdown.get(start..).unwrap_or("")));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::outline;

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
}
