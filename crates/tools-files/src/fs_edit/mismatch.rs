//! Why a text was not found: already replaced, similar, or missing.

use crate::content::fuzzy_match;
use crate::content::text_lines;
use octo_toolkit::ToolError;

/// A shorter text may be in the file for another reason.
const MIN_CONCLUSIVE_LEN: usize = 24;

/// `text`, `old` and `new` use LF only.
pub fn mismatch_error(text: &str, old: &str, new: &str) -> ToolError {
    let there = if new.trim().is_empty() { None } else { text.find(new) };
    let Some(at) = there else {
        return ToolError::not_found("old_text is not in the file.").hint(repair(text, old));
    };
    let line = text_lines::number_at(text, at);
    let miss = ToolError::not_found(format!("old_text is not in the file, but new_text is, at line {line}."));
    match new.len() {
        MIN_CONCLUSIVE_LEN.. => miss.hint("The edit seems to be already applied; omit it."),
        _ => miss.hint(format!("If the edit is already applied, omit it. {}", repair(text, old))),
    }
}

fn repair(text: &str, old: &str) -> String {
    if let Some(slip) = known_mistake(text, old) {
        return slip.to_owned();
    }
    let (file, wanted): (Vec<&str>, Vec<&str>) = (text.lines().collect(), old.lines().collect());
    let Some(near) = fuzzy_match::find_nearest(&file, &wanted) else {
        return "The file contains nothing similar. Read it with fs_read_text and copy the text from there."
            .to_owned();
    };
    let differs = near.divergence.as_ref().map(|differs| differs.describe("old_text"));
    let differs = differs.unwrap_or_else(|| "They differ in where the lines start or end.".to_owned());
    format!(
        "Lines {} to {} are {} % similar. {differs} Copy the text exactly from fs_read_text with start_line {} and \
         end_line {}.",
        near.first, near.last, near.similarity, near.first, near.last
    )
}

/// Two common mistakes.
fn known_mistake(text: &str, old: &str) -> Option<&'static str> {
    let numbered = |line: &str| {
        let rest = line.trim_start().trim_start_matches(|char: char| char.is_ascii_digit());
        rest.len() < line.trim_start().len() && rest.starts_with('\t')
    };
    if old.lines().all(numbered) {
        return Some("Its lines start with line numbers; remove these and the tabs after them.");
    }
    if old.contains("\\n") && text.contains(&old.replace("\\n", "\n")) {
        return Some("It has a literal \\n where the file has line breaks; use real line breaks.");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::mismatch_error;
    use std::time::{Duration, Instant};

    #[test]
    fn a_near_miss_shows_the_place() {
        let hint = mismatch_error("a\n\tlet x = 1;\nb\n", "    let x = 1;\nb", "y").hint.unwrap();
        assert!(hint.starts_with("Lines 2 to 3 are "), "{hint}");
        assert!(hint.contains("Line 2 is \"\\tlet x = 1;\", old_text has \"    let x = 1;\""), "{hint}");
        assert!(hint.contains("tabs and spaces"), "{hint}");
        assert!(hint.ends_with("start_line 2 and end_line 3."), "{hint}");
    }

    #[test]
    fn what_is_already_applied_is_said_to_be() {
        let error = mismatch_error("one\nthree\n", "two", "three");
        assert!(error.message.contains("line 2"));
        assert!(error.hint.unwrap().contains("already applied"));
    }

    #[test]
    fn slips_are_known_by_sight() {
        let hint = |text, old| mismatch_error(text, old, "new").hint.unwrap().into_owned();
        assert!(hint("one\ntwo\n", "  1\tone\n  2\ttwo").contains("line numbers"));
        assert!(hint("one\ntwo\n", "one\\ntwo").contains("real line breaks"));
    }

    #[test]
    fn a_large_file_is_searched_quickly() {
        let text = (0..25_000).map(|n| format!("    let value_{n} = {};\n}}\n", n * 7)).collect::<String>();
        let old = (0..400).map(|n| format!("    let other_{n} = {n};\n}}\n")).collect::<String>();
        let began = Instant::now();
        mismatch_error(&text, &old, "something new");
        mismatch_error(&text, "    let valeu_100 = 700;", "something new");
        // Unoptimized builds are ten times slower.
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
}
