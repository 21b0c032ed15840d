//! Only the binary has features; every other crate has a single configuration.

use super::Report;
use super::cargo_manifests::Package;
use super::rust_sources::Source;
use crate::rust_scan;

const BINARY_CRATE: &str = "octoprox";

pub fn check(packages: &[Package], sources: &[Source]) -> Report {
    let declared = packages.iter().filter(|package| package.has_features && package.name != BINARY_CRATE);
    let declared = declared.map(|package| format!("{} has features; only {BINARY_CRATE} may", package.name));
    let home = format!("crates/{BINARY_CRATE}/");
    let asked = sources.iter().filter(|source| !source.path.starts_with(&home)).flat_map(feature_cfgs);
    Report { problems: declared.chain(asked).collect(), notes: Vec::new() }
}

/// Every `cfg` on a feature.
fn feature_cfgs(source: &Source) -> Vec<String> {
    let places = ["cfg", "cfg_attr"].iter().flat_map(|word| {
        let starts = rust_scan::find_words(&source.code, word).into_iter();
        starts.map(|at| at + word.len())
    });
    let asking = places.filter(|after| names_feature(&source.code, *after));
    asking
        .map(|at| {
            format!("{}:{} uses a Cargo feature; only {BINARY_CRATE} may", source.path, source.line_of(at))
        })
        .collect()
}

fn names_feature(code: &str, after: usize) -> bool {
    let open = after + usize::from(code.as_bytes().get(after) == Some(&b'!'));
    if code.as_bytes().get(open) != Some(&b'(') {
        return false;
    }
    let inside =
        rust_scan::closing_bracket(code, open).and_then(|end| code.get(open..end)).unwrap_or_default();
    rust_scan::find_words(inside, "feature").iter().any(|at| {
        let rest = inside.get(at + "feature".len()..).unwrap_or_default();
        rest.trim_start().starts_with('=')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cfg_of_a_feature() {
        for (path, text, problems) in [
            ("crates/octo-hub/src/lib.rs", "#[cfg(feature = \"x\")] mod a;", 1),
            ("crates/octo-hub/src/lib.rs", "#[cfg(all(\n    test,\n    feature = \"x\",\n))] mod a;", 1),
            ("crates/octo-hub/src/lib.rs", "if cfg!(feature = \"x\") {}", 1),
            ("crates/octo-hub/src/lib.rs", "#![cfg_attr(feature = \"x\", no_std)]", 1),
            ("crates/octo-hub/src/lib.rs", "#[cfg(test)] mod a;", 0),
            ("crates/octo-hub/src/lib.rs", "// #[cfg(feature = \"x\")]", 0),
            ("crates/octoprox/src/main.rs", "#[cfg(feature = \"x\")] mod a;", 0),
        ] {
            let report = check(&[], &[Source::new(path, text)]);
            assert_eq!(report.problems.len(), problems, "{path}: {text}");
        }
    }

    #[test]
    fn declared_features() {
        let text = "[package]\nname = \"octo-hub\"\n[features]\nx = []\n";
        let package = super::super::cargo_manifests::parse(text).unwrap();
        assert_eq!(check(&[package], &[]).problems.len(), 1);
    }
}
