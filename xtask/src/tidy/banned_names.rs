//! Names that say nothing to a stranger. `docs/concepts.md` has the words to use instead.

use super::Report;
use super::rust_sources::Source;
use crate::rust_scan::find_words;

/// Participles: they say that something happened, not what the thing is.
const PARTICIPLES: [&str; 16] = [
    "Asked", "Begun", "Came", "Found", "Given", "Gone", "Heard", "Held", "Kept", "Known", "Left", "Seen",
    "Shown", "Taken", "Told", "Wanted",
];
/// Furniture: one metaphor, several meanings each.
const FURNITURE: [&str; 9] = ["Book", "Cage", "Desk", "Door", "Doors", "Errand", "Pen", "Room", "Shelf"];
/// Limits are `MAX_*`, `*_TIMEOUT`, `*_INTERVAL` and so on, named for what they limit.
const CONSTANTS: [&str; 12] = [
    "BREATH", "DEEPEST", "ENOUGH", "FAIR", "FAREWELL", "GRACE", "LARGEST", "LONGEST", "LOOK", "MOST",
    "PATIENCE", "SOON",
];
const KEYWORDS: [&str; 7] = ["struct", "enum", "union", "trait", "type", "const", "static"];

pub fn check(sources: &[Source]) -> Report {
    Report { problems: sources.iter().flat_map(problems).collect(), notes: Vec::new() }
}

fn problems(source: &Source) -> Vec<String> {
    let file = source.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    let is_banned_file = PARTICIPLES.iter().chain(&FURNITURE).any(|name| name.eq_ignore_ascii_case(file));
    let file = is_banned_file.then(|| format!("{}: name the file for what it holds", source.path));
    let defined = KEYWORDS
        .iter()
        .flat_map(|keyword| find_words(&source.code, keyword).into_iter().map(move |at| at + keyword.len()));
    let named = defined.filter_map(|at| Some((at, name_at(source.code.get(at..)?)?)));
    let banned = named.filter(|(_, name)| {
        PARTICIPLES.iter().chain(&FURNITURE).chain(&CONSTANTS).any(|banned| banned == name)
    });
    let banned = banned.map(|(at, name)| {
        format!("{}:{}: `{name}` does not say what it is", source.path, source.line_of(at))
    });
    file.into_iter().chain(banned).collect()
}

/// The name that a definition begins with, after `mut`.
fn name_at(rest: &str) -> Option<&str> {
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("mut ").unwrap_or(rest).trim_start();
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    rest.get(..end).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banned_names_are_problems_where_they_are_defined() {
        for (path, text, count) in [
            ("a/status.rs", "struct LoginStatus;\nconst MAX_LOGINS: usize = 1;\n", 0),
            ("a/status.rs", "pub struct Told {}\n", 1),
            ("a/status.rs", "enum Kept<T> { A(T) }\nstatic PATIENCE: u8 = 1;\n", 2),
            ("a/status.rs", "// struct Told\nfn f() { Told::new() }\n", 0),
            ("a/told.rs", "", 1),
            ("a/shelf.rs", "struct Shelf(u8);\n", 2),
        ] {
            assert_eq!(check(&[Source::new(path, text)]).problems.len(), count, "{path} {text}");
        }
    }
}
