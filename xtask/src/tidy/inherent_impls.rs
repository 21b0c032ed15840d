//! Inherent methods are in the module that defines the type, or in its child modules.

use super::Report;
use super::rust_sources::Source;
use crate::rust_scan::find_words;
use std::collections::{BTreeMap, BTreeSet};

/// Types whose methods may be elsewhere in their crate, with the reason.
pub const EXCEPTIONS: [(&str, &str); 8] = [
    ("ApiOperation", "a tool's arguments are assigned where the tool is made"),
    ("Catalogue", "look-alike names and the registry API are subjects of their own"),
    ("ConfinementPlan", "only confine.rs knows Landlock"),
    ("Mcp", "one file per transport, era and group of methods"),
    ("Root", "path resolution is in one file"),
    ("RootedPath", "path resolution is in one file"),
    ("Shell", "running a command is the subject of run_command.rs"),
    ("Workspace", "path resolution and batches have their own files"),
];

pub fn check(sources: &[Source], exceptions: &[(&str, &str)]) -> Report {
    let mut modules: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for source in sources {
        for name in defined(&source.code) {
            modules.entry((crate_of(source), name)).or_default().push(module_of(&source.path));
        }
    }
    let mut elsewhere: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for source in sources {
        for name in implemented(&source.code) {
            let homes = modules.get(&(crate_of(source), name)).map(Vec::as_slice).unwrap_or_default();
            // A type that a macro defines has no home.
            let is_home = homes.is_empty() || homes.iter().any(|home| is_within(&source.path, home));
            if !is_home && !exceptions.iter().any(|(excepted, _)| *excepted == name) {
                elsewhere.entry((crate_of(source), name)).or_default().insert(&source.path);
            }
        }
    }
    let problems = elsewhere.into_iter().map(|((_, name), paths)| {
        let paths: Vec<&str> = paths.into_iter().collect();
        format!("methods of {name} outside the module that defines it: {}", paths.join(", "))
    });
    let notes =
        exceptions.iter().map(|(name, reason)| format!("methods of {name} in several modules: {reason}"));
    Report { problems: problems.collect(), notes: notes.collect() }
}

fn crate_of(source: &Source) -> &str {
    source.path.split("/src/").next().unwrap_or_default()
}

/// Path of a module without `.rs`, `/mod.rs` or `/lib.rs`.
fn module_of(path: &str) -> &str {
    let path = path.trim_end_matches(".rs");
    ["/mod", "/lib", "/main"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path)
}

/// Whether a file is the module itself or a descendant.
fn is_within(path: &str, module: &str) -> bool {
    module_of(path).strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn defined(code: &str) -> BTreeSet<&str> {
    let keywords = ["struct", "enum", "union", "type"];
    let after = keywords.iter().flat_map(|it| find_words(code, it).into_iter().map(move |at| at + it.len()));
    after.filter_map(|at| name(code.get(at..)?.trim_start())).collect()
}

/// The types of `impl Type { … }`, without those of `impl Trait for Type`.
fn implemented(code: &str) -> Vec<&str> {
    let heads = find_words(code, "impl").into_iter().filter_map(|at| {
        let rest = code.get(at + "impl".len()..)?;
        let starts_item =
            code.get(..at)?.trim_end().chars().next_back().is_none_or(|last| "};]{".contains(last));
        let head = rest.get(..rest.find(['{', ';'])?)?;
        let head = head.split(" where ").next().unwrap_or(head).trim_start();
        (starts_item && find_words(head, "for").is_empty()).then_some(head)
    });
    heads.filter_map(|head| name(without_generics(head).rsplit("::").next()?.trim_start())).collect()
}

/// The head after the parameters of `impl<…>`, up to those of the type.
fn without_generics(head: &str) -> &str {
    let mut depth = 0_i32;
    let mut from = 0;
    if head.starts_with('<') {
        for (at, byte) in head.bytes().enumerate() {
            depth += i32::from(byte == b'<')
                - i32::from(byte == b'>' && head.as_bytes().get(at.wrapping_sub(1)) != Some(&b'-'));
            if depth == 0 {
                from = at + 1;
                break;
            }
        }
    }
    let head = head.get(from..).unwrap_or_default().trim();
    head.split('<').next().unwrap_or(head)
}

fn name(text: &str) -> Option<&str> {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
    text.get(..end).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> usize {
        let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        check(&sources, &[("Facade", "x")]).problems.len()
    }

    #[test]
    fn methods_elsewhere_are_a_problem() {
        let defined = "pub struct Hub<T>(T);\nimpl<T: Fn() -> u8> Hub<T> {\n    fn a(&self) {}\n}\n";
        for (other, count) in [
            ("impl Clone for Hub { }", 0),
            ("impl<T> From<T> for super::Hub<T> where T: Copy { }", 0),
            ("fn f() -> impl Fn() { || {} }\nstruct X;", 0),
            ("use crate::Hub;\n\nimpl Hub {\n    fn b(&self) {}\n}\n", 1),
            ("impl<T> crate::hub::Hub<T> { }\n", 1),
            ("impl Facade { }\n", 0),
        ] {
            assert_eq!(problems(&[("x/src/hub.rs", defined), ("x/src/call.rs", other)]), count, "{other}");
        }
        let other = "impl super::Hub { }\n";
        for (path, count) in [("x/src/hub/call.rs", 0), ("x/src/hub_call.rs", 1), ("x/src/lib.rs", 1)] {
            assert_eq!(problems(&[("x/src/hub.rs", defined), (path, other)]), count, "{path}");
        }
    }
}
