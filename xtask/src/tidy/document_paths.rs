//! Source files that the architecture document names must exist.

use super::Report;
use super::rust_sources::Source;

pub fn check(document: &str, sources: &[Source]) -> Report {
    let quoted = document.split('`').skip(1).step_by(2);
    let named = quoted.filter(|text| text.ends_with(".rs") && !text.contains([' ', '*', '{']));
    let is_known = |path: &str| {
        sources.iter().any(|source| {
            source.path == path || source.path.strip_suffix(path).is_some_and(|folder| folder.ends_with('/'))
        })
    };
    let missing = named.filter(|path| !is_known(path));
    let problems = missing.map(|path| format!("ARCHITECTURE.md: `{path}` does not exist")).collect();
    Report { problems, notes: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_exist_is_a_problem() {
        let sources = [Source::new("crates/hub/src/call.rs", "")];
        for (document, count) in [
            ("See `hub/src/call.rs` and `call.rs`.", 0),
            ("See `all.rs`.", 1),
            ("See `hub/src/gone.rs` and `crates/hub/src/call.rs`.", 1),
            ("`cargo xtask tidy`, `tools-*/x.rs`", 0),
        ] {
            assert_eq!(check(document, &sources).problems.len(), count, "{document}");
        }
    }
}
