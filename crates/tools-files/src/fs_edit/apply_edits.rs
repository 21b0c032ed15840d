//! Text replacement: exactly the expected number of occurrences, or none.

use super::mismatch;
use super::newline_map::NewlineMap;
use crate::content::text_lines::{self, LineEnding};
use octo_toolkit::{Kind, ToolError};

/// Maximum number of lines listed for ambiguous matches.
const MAX_NAMED_LINES: usize = 5;

#[derive(Debug, Clone, Copy)]
pub struct Edit<'a> {
    pub old: &'a str,
    pub new: &'a str,
    pub all: bool,
    pub expected: Option<u64>,
}

/// Applies all edits, each to the result of the one before; returns the text and the number of replacements.
pub fn apply(text: &str, edits: &[Edit<'_>]) -> Result<(String, u64), ToolError> {
    let mut text = text.to_owned();
    let mut replaced = 0;
    for (index, edit) in edits.iter().enumerate() {
        let (next, count) = one(&text, edit).map_err(|error| with_edit_number(error, index, edits.len()))?;
        text = next;
        replaced += count;
    }
    Ok((text, replaced))
}

/// Adds which of several edits failed, and that none was made.
fn with_edit_number(mut error: ToolError, index: usize, count: usize) -> ToolError {
    if count > 1 {
        error.message = format!("Edit {} of {count}: {} No edit was made.", index + 1, error.message).into();
    }
    error
}

fn one(text: &str, edit: &Edit<'_>) -> Result<(String, u64), ToolError> {
    let (old, new) = (LineEnding::Lf.apply_to(edit.old), LineEnding::Lf.apply_to(edit.new));
    if edit.old.is_empty() {
        return fill_empty(text, edit.new);
    }
    if old == new {
        return Err(ToolError::invalid("old_text and new_text are the same, so there is nothing to change.")
            .hint("Omit this edit; line endings are retained and cannot be changed here."));
    }
    let folded = NewlineMap::new(text);
    let places: Vec<usize> = match edit.all || edit.expected.is_some() {
        true => folded.text.match_indices(old.as_str()).map(|(at, _)| at).collect(),
        false => overlapping(&folded.text, &old),
    };
    if places.is_empty() {
        return Err(mismatch::mismatch_error(&folded.text, &old, &new));
    }
    check_count(&folded.text, &places, edit)?;
    let most = LineEnding::dominant(text);
    let mut result = String::with_capacity(text.len() + new.len());
    let mut done = 0;
    for at in &places {
        let range = folded.to_raw_range(*at..*at + old.len());
        let ending = LineEnding::uniform(text.get(range.clone()).unwrap_or_default()).unwrap_or(most);
        result.push_str(text.get(done..range.start).unwrap_or_default());
        result.push_str(&ending.apply_to(&new));
        done = range.end;
    }
    result.push_str(text.get(done..).unwrap_or_default());
    Ok((result, places.len() as u64))
}

fn fill_empty(text: &str, new: &str) -> Result<(String, u64), ToolError> {
    if text.is_empty() && !new.is_empty() {
        return Ok((new.to_owned(), 1));
    }
    Err(ToolError::invalid("old_text is empty.").hint(
        "Pass the text to replace, copied from the file; to replace the whole file call fs_write_text, to add \
         at its end fs_append.",
    ))
}

/// Two positions, or one; overlapping ones count, because either could be meant.
fn overlapping(text: &str, old: &str) -> Vec<usize> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) =
        text.get(from..).and_then(|rest| rest.find(old)).filter(|_| places.len() <= MAX_NAMED_LINES)
    {
        places.push(from + at);
        from += at + step;
    }
    places
}

fn check_count(text: &str, places: &[usize], edit: &Edit<'_>) -> Result<(), ToolError> {
    let found = places.len() as u64;
    match edit.expected {
        Some(expected) if expected != found => Err(conflict(format!(
            "old_text occurs {} ({}), not {expected}.",
            times(found),
            at_lines(text, places)
        ))
        .hint(format!("To replace all of them, set expected_replacements to {found}."))),
        None if !edit.all && found > 1 => {
            let more =
                if places.len() > MAX_NAMED_LINES { "more than 5 times".to_owned() } else { times(found) };
            Err(conflict(format!("old_text occurs {more} ({}).", at_lines(text, places))).hint(
                "Add surrounding lines to old_text and new_text until it is unique, or set replace_all to true.",
            ))
        }
        _ => Ok(()),
    }
}

fn conflict(message: String) -> ToolError {
    ToolError::new(Kind::Conflict, message)
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn at_lines(text: &str, places: &[usize]) -> String {
    let numbers: Vec<String> =
        places.iter().take(MAX_NAMED_LINES).map(|at| text_lines::number_at(text, *at).to_string()).collect();
    let more = if places.len() > MAX_NAMED_LINES { " and more" } else { "" };
    format!("line{} {}{more}", if places.len() == 1 { "" } else { "s" }, numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edit<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
        Edit { old, new, all: false, expected: None }
    }

    fn all<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
        Edit { all: true, ..edit(old, new) }
    }

    #[test]
    fn what_fits_is_replaced_and_the_rest_stays() {
        let rows = [
            ("a\nb\nc\n", vec![edit("b", "B")], "a\nB\nc\n"),
            ("a\nb", vec![edit("b", "B")], "a\nB"),
            ("a\r\nb\r\nc\r\n", vec![edit("a\nb\n", "a\nx\nb\n")], "a\r\nx\r\nb\r\nc\r\n"),
            ("a\r\nb\nc\r\nd\n", vec![edit("c\nd", "C\nX\nd")], "a\r\nb\nC\r\nX\r\nd\n"),
            ("a\r\nb\nc\r\nd\r\n", vec![edit("b\nc", "b\nX\nc")], "a\r\nb\nX\nc\r\nd\r\n"),
            ("a\nb\n", vec![edit("a\r\nb", "x\r\ny")], "x\ny\n"),
            ("one two one", vec![all("one", "1")], "1 two 1"),
            ("one", vec![edit("one", "two"), edit("two", "three")], "three"),
            ("say \"\\n\"", vec![edit("\\n", "\\t")], "say \"\\t\""),
            ("", vec![edit("", "new")], "new"),
            ("a b", vec![all(" ", "  ")], "a  b"),
            ("    ", vec![all(" ", "  ")], "        "),
            ("one\r\ntwo", vec![edit("\n", " ")], "one two"),
            ("delete me\nkeep", vec![edit("delete me\n", "")], "keep"),
            ("x x x", vec![Edit { expected: Some(3), ..edit("x", "y") }], "y y y"),
        ];
        for (text, edits, wanted) in rows {
            let (result, _) = apply(text, &edits).unwrap_or_else(|error| panic!("{text:?}: {error}"));
            assert_eq!(result, wanted, "{text:?}");
        }
    }

    #[test]
    fn two_occurrences_are_an_error_with_their_lines() {
        let error = apply("x\ny\nx\n", &[edit("x", "z")]).unwrap_err();
        assert_eq!(error.kind, Kind::Conflict);
        assert_eq!(error.message, "old_text occurs 2 times (lines 1, 3).");
        let error = apply("aaa", &[edit("aa", "b")]).unwrap_err();
        assert_eq!(error.kind, Kind::Conflict, "overlapping places are two places");
        let error = apply(&"x\n".repeat(1000), &[edit("x", "z")]).unwrap_err();
        assert_eq!(error.message, "old_text occurs more than 5 times (lines 1, 2, 3, 4, 5 and more).");
        let error = apply("x x", &[Edit { expected: Some(1), ..edit("x", "z") }]).unwrap_err();
        assert_eq!(error.message, "old_text occurs 2 times (lines 1, 1), not 1.");
        let error = apply("a\r\nb a\nb", &[edit("a\nb", "z")]).unwrap_err();
        assert_eq!(error.kind, Kind::Conflict, "the same text with another line ending is a second place");
    }

    #[test]
    fn edits_that_say_nothing_are_refused() {
        for (text, edits) in [
            ("text", edit("", "x")),
            ("", edit("", "")),
            ("text", edit("text", "text")),
            ("a\r\n", edit("a\n", "a\r\n")),
        ] {
            assert_eq!(apply(text, &[edits]).unwrap_err().kind, Kind::Invalid, "{edits:?}");
        }
    }

    #[test]
    fn one_edit_that_does_not_fit_names_itself() {
        let error = apply("a b", &[edit("a", "x"), edit("q", "y")]).unwrap_err();
        assert!(error.message.starts_with("Edit 2 of 2: "), "{error}");
        assert!(error.message.ends_with("No edit was made."), "{error}");
    }

    proptest! {
        #[test]
        fn everything_outside_the_match_stays_byte_for_byte(
            before in "[a-c\r\n é]{0,40}",
            after in "[a-c\r\n é]{0,40}",
            new in "[x-z\n]{0,8}",
        ) {
            let text = format!("{before}MATCH{after}");
            let (result, count) = apply(&text, &[edit("MATCH", &format!("<{new}>"))]).unwrap();
            prop_assert_eq!(count, 1);
            let inside = result.strip_prefix(&before).and_then(|rest| rest.strip_suffix(&after)).unwrap();
            prop_assert_eq!(inside.replace("\r\n", "\n"), format!("<{new}>"));
        }

        #[test]
        fn there_and_back_is_where_it_began(text in "[ab\n]{0,30}", old in "[ab\n]{1,4}") {
            let there = apply(&text, &[edit(&old, "<new>")]);
            if let Ok((there, _)) = there {
                prop_assert_eq!(apply(&there, &[edit("<new>", &old)]).unwrap().0, text);
            }
        }
    }
}
