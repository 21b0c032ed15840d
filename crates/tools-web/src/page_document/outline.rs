//! Headings of a Markdown text, and sections by heading.

use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Range;

/// A heading of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Heading {
    /// Its number, for `section`.
    pub number: usize,
    /// 1 for the highest level, 6 for the lowest.
    pub level: u8,
    /// Text of the heading.
    pub text: String,
    /// Line number, from 1.
    pub line: usize,
    /// Character offset, for `offset`.
    pub offset: usize,
    /// Characters of its section, including subsections.
    pub chars: usize,
}

/// Maximum number of headings in an outline.
const MAX_HEADINGS: usize = 2000;

/// Returns the `#` headings, except those inside code.
pub fn outline(markdown: &str) -> Vec<Heading> {
    let mut found: Vec<Heading> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut offset = 0;
    for (at, line) in markdown.split_inclusive('\n').enumerate() {
        let text = line.trim();
        if let Some(open) = fence {
            if text.starts_with(open) && text.trim_start_matches(['`', '~']).is_empty() {
                fence = None;
            }
        } else if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark)) {
            let length = text.len() - text.trim_start_matches(['`', '~']).len();
            fence = text.get(..length).or(Some(mark));
        } else if let Some((level, said)) = parse_heading(line)
            && found.len() < MAX_HEADINGS
        {
            let number = found.len() + 1;
            found.push(Heading { number, level, text: said, line: at + 1, offset, chars: 0 });
        }
        offset += line.chars().count();
    }
    let ends: Vec<usize> = (0..found.len())
        .map(|at| {
            let level = found.get(at).map_or(0, |heading| heading.level);
            found.iter().skip(at + 1).find(|later| later.level <= level).map_or(offset, |later| later.offset)
        })
        .collect();
    for (heading, end) in found.iter_mut().zip(ends) {
        heading.chars = end - heading.offset;
    }
    found
}

fn parse_heading(line: &str) -> Option<(u8, String)> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    if !(1..=6).contains(&level) || !rest.starts_with(' ') {
        return None;
    }
    let text = strip_markup(rest.trim().trim_end_matches('#').trim_end());
    (!text.is_empty()).then(|| (u8::try_from(level).unwrap_or(6), text.chars().take(200).collect()))
}

/// Heading without markup of links, emphasis and code.
fn strip_markup(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        rest = after.find(')').and_then(|end| after.get(end + 1..)).unwrap_or("");
    }
    out.push_str(rest);
    out.replace(['[', '*', '`', '\\'], "").trim().to_owned()
}

/// Character range of the section with this number or heading text; a part of the heading is enough.
pub fn section(outline: &[Heading], query: &str) -> Option<Range<usize>> {
    let wanted = query.trim().trim_start_matches('#').trim();
    let lower = wanted.to_lowercase();
    let by_text =
        |test: &dyn Fn(&str) -> bool| outline.iter().find(|heading| test(&heading.text.to_lowercase()));
    let by_number = wanted.parse::<usize>().ok().and_then(|number| outline.get(number.checked_sub(1)?));
    let found = by_text(&|text| text == lower)
        .or(by_number)
        .or_else(|| by_text(&|text| text.starts_with(&lower)))
        .or_else(|| by_text(&|text| text.contains(&lower)))?;
    (!lower.is_empty()).then_some(found.offset..found.offset + found.chars)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "Intro ü\n\n# One\n\na\n\n## One `b` [c](http://x/)\n\n```sh\n# no heading\n```\n\n# Two\n\nend\n";

    #[test]
    fn headings_are_found_with_their_places_and_not_in_code() {
        let found = outline(TEXT);
        let seen: Vec<(usize, u8, &str, usize)> =
            found.iter().map(|one| (one.number, one.level, one.text.as_str(), one.line)).collect();
        assert_eq!(seen, [(1, 1, "One", 3), (2, 2, "One b c", 7), (3, 1, "Two", 13)]);
        for one in &found {
            let text: String = TEXT.chars().skip(one.offset).take(2).collect();
            assert!(text.starts_with('#'), "{text}");
        }
    }

    #[test]
    fn a_section_reaches_to_the_next_heading_of_its_level() {
        let found = outline(TEXT);
        let text = |wanted: &str| {
            let range = section(&found, wanted)?;
            Some(TEXT.chars().skip(range.start).take(range.len()).collect::<String>())
        };
        assert!(text("one").unwrap().contains("# no heading"));
        assert!(!text("one").unwrap().contains("Two"));
        assert_eq!(text("3").unwrap(), "# Two\n\nend\n");
        assert_eq!(text("## tw").unwrap(), "# Two\n\nend\n");
        assert_eq!(text("one b").unwrap().lines().next(), Some("## One `b` [c](http://x/)"));
        assert_eq!((text("nine"), text("0"), text("")), (None, None, None));
    }
}
