//! Commands and environment variables of the binary are named by `crates/octoprox` only; other crates return a
//! `Remedy`. Exceptions are listed here with the reason, and the list is printed.

use super::Report;
use super::rust_sources::Source;
use crate::rust_scan::{find_words, string_literals};

/// The crate that has the commands and the variables.
const BINARY_CRATE: &str = "crates/octoprox/";
/// The table of the variables.
const VARIABLES_FILE: &str = "crates/octoprox/src/settings/load/env_variables.rs";

/// A file that may contain such a text, and why nobody reads it as a command.
pub const EXCEPTIONS: &[(&str, &str)] = &[
    ("crates/octo-mcp/src/request_state.rs", "label of a derived key"),
    ("crates/octo-ports/src/argument_key.rs", "label of a derived key"),
];

pub fn check(sources: &[Source], exceptions: &[(&str, &str)]) -> Report {
    let mut report = Report::default();
    let mut used = vec![false; exceptions.len()];
    let variables = variables(sources);
    let libraries = sources.iter().filter(|source| {
        source.path.starts_with("crates/") && !source.path.starts_with(BINARY_CRATE) && !source.is_test()
    });
    for source in libraries {
        let excused = exceptions.iter().position(|(path, _)| *path == source.path);
        for (at, _) in
            string_literals(&source.text).into_iter().filter(|(_, text)| names_binary(text, &variables))
        {
            match excused.and_then(|index| used.get_mut(index)) {
                Some(used) => *used = true,
                None => report.problems.push(format!(
                    "{}:{} names a command or a variable of the binary; return a Remedy",
                    source.path,
                    source.line_of(at)
                )),
            }
        }
    }
    for ((path, why), used) in exceptions.iter().zip(used) {
        report.notes.push(format!("  {path}  may name a command: {why}"));
        if !used {
            report.problems.push(format!("{path} no longer needs an exception for commands"));
        }
    }
    report
}

/// The names in the table of variables.
fn variables(sources: &[Source]) -> Vec<&str> {
    let tables = sources.iter().filter(|source| source.path == VARIABLES_FILE);
    let texts =
        tables.flat_map(|source| string_literals(&source.text)).map(|(_, text)| text.trim_matches('"'));
    texts
        .filter(|text| text.contains('_') && !text.contains(|c: char| !c.is_ascii_uppercase() && c != '_'))
        .collect()
}

/// Whether a text contains `octoprox COMMAND` or a variable.
fn names_binary(text: &str, variables: &[&str]) -> bool {
    let is_command =
        |rest: &str| rest.strip_prefix(' ').is_some_and(|rest| rest.starts_with(|c: char| c.is_lowercase()));
    text.contains("OCTOPROX_")
        || variables.iter().any(|name| !find_words(text, name).is_empty())
        || text.split("octoprox").skip(1).any(is_command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_name_no_commands_and_no_variables() {
        for (path, text, count) in [
            ("crates/tools-web/src/a.rs", r#"f("Run `octoprox login x`.")"#, 1),
            ("crates/tools-web/src/a.rs", r##"f(r#"set OCTOPROX_PORT"#, "octoprox trust")"##, 2),
            (
                "crates/tools-web/src/a.rs",
                r#"f("Check BRAVE_API_KEY.", "search.brave_api_key", "MY_BRAVE_API_KEY")"#,
                1,
            ),
            ("crates/tools-web/src/a.rs", r#"f("octoprox", "octoprox/1.0", "Octoprox runs")"#, 0),
            ("crates/tools-web/src/a.rs", "// `octoprox login x`, \"OCTOPROX_PORT\"\n", 0),
            ("crates/tools-web/src/tests/a.rs", r#"f("octoprox login x")"#, 0),
            ("crates/octoprox/src/a.rs", r#"f("octoprox login x")"#, 0),
            ("xtask/src/a.rs", r#"f("octoprox login x")"#, 0),
        ] {
            let table = Source::new(VARIABLES_FILE, r#"[("BRAVE_API_KEY", "search.brave_api_key")]"#);
            assert_eq!(check(&[table, Source::new(path, text)], &[]).problems.len(), count, "{path} {text}");
        }
    }

    #[test]
    fn an_exception_covers_its_file_and_must_be_needed() {
        let exceptions = [("crates/octo-ports/src/a.rs", "a label")];
        for (text, count) in [(r#"f("octoprox audit")"#, 0), ("", 1)] {
            let report = check(&[Source::new("crates/octo-ports/src/a.rs", text)], &exceptions);
            assert_eq!(report.problems.len(), count, "{text}");
        }
    }
}
