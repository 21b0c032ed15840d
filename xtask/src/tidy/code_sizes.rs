//! Size limits of files and functions. Exceptions are listed in xtask/exceptions.txt with their reasons.

use super::Report;
use super::rust_sources::Source;
use crate::rust_scan;
use std::collections::BTreeMap;

const MAX_FILE_LINES: usize = 600;
const MAX_FUNCTION_LINES: usize = 80;
const LONGEST_SHOWN: usize = 5;

/// A file (`path`) or a function (`path::name`) and its number of lines.
#[derive(Debug)]
struct Size {
    what: String,
    lines: usize,
}

pub fn check(sources: &[Source], exceptions: &str) -> Report {
    let files =
        sources.iter().map(|source| Size { what: source.path.clone(), lines: source.text.lines().count() });
    let files = longest_first(files.collect());
    let functions = longest_first(sources.iter().flat_map(functions).collect());
    let mut notes = Vec::new();
    notes.extend(longest_lines("longest files", MAX_FILE_LINES, &files));
    notes.extend(longest_lines("longest functions", MAX_FUNCTION_LINES, &functions));
    let too_long = over_limit(&files, MAX_FILE_LINES).chain(over_limit(&functions, MAX_FUNCTION_LINES));
    let too_long: BTreeMap<&str, String> = too_long.collect();
    Report { notes, problems: apply_exceptions(too_long, exceptions) }
}

fn longest_first(mut sizes: Vec<Size>) -> Vec<Size> {
    sizes.sort_by(|left, right| right.lines.cmp(&left.lines).then_with(|| left.what.cmp(&right.what)));
    sizes
}

fn longest_lines(title: &str, limit: usize, sizes: &[Size]) -> Vec<String> {
    let lines = sizes.iter().take(LONGEST_SHOWN).map(|size| format!("  {:4}  {}", size.lines, size.what));
    [format!("{title} (limit {limit} lines):")].into_iter().chain(lines).collect()
}

fn over_limit(sizes: &[Size], limit: usize) -> impl Iterator<Item = (&str, String)> {
    let long = sizes.iter().filter(move |size| size.lines > limit);
    long.map(move |size| {
        (size.what.as_str(), format!("{} has {} lines, the limit is {limit}", size.what, size.lines))
    })
}

/// Removes exceptions from the list; an exception that matches nothing is a problem, too.
fn apply_exceptions(mut too_long: BTreeMap<&str, String>, exceptions: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for line in exceptions.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (what, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if reason.is_empty() {
            problems.push(format!("exceptions.txt: {what} has no reason"));
        }
        if too_long.remove(what).is_none() {
            problems.push(format!("exceptions.txt: {what} no longer needs an exception"));
        }
    }
    problems.extend(too_long.into_values());
    problems
}

fn functions(source: &Source) -> Vec<Size> {
    rust_scan::find_words(&source.code, "fn").into_iter().filter_map(|at| function(source, at)).collect()
}

/// The function whose `fn` is at `at`, unless it has no name or no body (a type, a trait method).
fn function(source: &Source, at: usize) -> Option<Size> {
    let signature = source.code.get(at + 2..)?;
    let name = signature.trim_start();
    let name = name.get(..name.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?)?;
    if name.is_empty() {
        return None;
    }
    let open = at + 2 + body(signature)?;
    let end = rust_scan::closing_bracket(&source.code, open)?;
    let lines = source.line_of(end - 1) - source.line_of(at) + 1;
    Some(Size { what: format!("{}::{name}", source.path), lines })
}

/// Position of the body: the first brace outside of other brackets, before any semicolon there.
fn body(signature: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, byte) in signature.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(lines: usize) -> String {
        format!("fn long(a: [u8; 2]) -> u8 {{\n{}}}\n", "    // {\n".repeat(lines - 2))
    }

    fn problems(text: &str, exceptions: &str) -> Vec<String> {
        check(&[Source::new("a.rs", text)], exceptions).problems
    }

    #[test]
    fn limits() {
        for (text, count) in [
            (long(80), 0),
            (long(81), 1),
            (format!("trait T {{\n    fn short(&self);\n    type F = fn(u8) -> u8;\n}}\n{}", long(80)), 0),
            ("// line\n".repeat(600), 0),
            ("// line\n".repeat(601), 1),
        ] {
            assert_eq!(problems(&text, "").len(), count);
        }
    }

    #[test]
    fn exceptions() {
        for (lines, exceptions, count) in [
            (81, "# why\na.rs::long one table", 0),
            (81, "a.rs::long", 1),
            (80, "a.rs::long one table", 1),
            (80, "gone.rs was long", 1),
        ] {
            assert_eq!(problems(&long(lines), exceptions).len(), count, "{exceptions}");
        }
    }

    #[test]
    fn what_is_printed() {
        let notes = check(&[Source::new("a.rs", &long(7))], "").notes;
        assert_eq!(notes[1], "     7  a.rs");
        assert_eq!(notes[3], "     7  a.rs::long");
    }
}
