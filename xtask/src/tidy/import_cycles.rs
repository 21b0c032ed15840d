//! Modules of a crate import one way. A module and its own children may know each other.

use super::Report;
use super::rust_sources::Source;
use crate::rust_scan::find_words;
use std::collections::{BTreeMap, BTreeSet};

/// Where there may be no cycle.
pub const SCOPES: [&str; 3] =
    ["crates/octo-hub/src", "crates/octo-upstream/src", "crates/octo-grants/src/fs"];

type Module = Vec<String>;
type Graph = BTreeMap<Module, BTreeSet<Module>>;

pub fn check(sources: &[Source], scopes: &[&str]) -> Report {
    let problems = scopes.iter().flat_map(|scope| {
        let cycles = cycles(&graph(sources, scope));
        cycles.into_iter().map(move |cycle| {
            let names: Vec<String> = cycle.iter().map(|module| module.join("::")).collect();
            format!("{scope}: {} modules import each other: {}", names.len(), names.join(", "))
        })
    });
    Report { problems: problems.collect(), notes: Vec::new() }
}

/// Imports between the files of a scope, without tests.
fn graph(sources: &[Source], scope: &str) -> Graph {
    let root = scope.find("/src").map_or(scope, |at| scope.get(..at + 4).unwrap_or(scope));
    let of_crate = sources.iter().filter_map(|source| {
        let inside = source.path.strip_prefix(root)?.strip_prefix('/')?;
        let is_test = inside.split('/').any(|part| part == "tests" || part == "tests.rs");
        (!is_test).then(|| (module(inside), source))
    });
    let files: BTreeMap<Module, &Source> = of_crate.collect();
    let prefix = module(scope.get(root.len()..).unwrap_or_default().trim_start_matches('/'));
    let in_scope = |module: &Module| module.starts_with(&prefix) && module.len() >= prefix.len().max(1);
    let edges = files.iter().filter(|(module, _)| in_scope(module)).map(|(module, source)| {
        let known = |path: &[String]| {
            (1..=path.len())
                .rev()
                .find_map(|end| files.get_key_value(path.get(..end)?).map(|(key, _)| key.clone()))
        };
        let imported = paths(&source.code, module).into_iter().filter_map(|path| known(&path));
        let imported = imported.filter(|other| in_scope(other) && !is_family(module, other));
        (module.clone(), imported.collect())
    });
    edges.collect()
}

/// The path of a module from its file: `a/b.rs` and `a/b/mod.rs` are `a::b`.
fn module(file: &str) -> Module {
    let parts = file.trim_end_matches(".rs").split('/');
    parts
        .filter(|part| !part.is_empty() && !["mod", "lib", "main"].contains(part))
        .map(str::to_owned)
        .collect()
}

fn is_family(one: &Module, other: &Module) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Every path that begins with `crate`, `super` or `self`, from the root of the crate.
fn paths(code: &str, module: &Module) -> Vec<Module> {
    let mut found = Vec::new();
    for word in ["crate", "super", "self"] {
        for at in find_words(code, word) {
            let is_inner = code.get(..at).is_some_and(|before| before.ends_with("::"));
            if !is_inner && let Some(rest) = code.get(at..) {
                let mut base = module.clone();
                expand(rest, &mut base, &mut found);
            }
        }
    }
    found
}

/// Follows a path, and all branches of a list in braces.
fn expand(text: &str, base: &mut Module, found: &mut Vec<Module>) {
    let text = text.trim_start();
    if let Some(list) = text.strip_prefix('{') {
        for part in branches(list) {
            expand(part, &mut base.clone(), found);
        }
        return;
    }
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    match name {
        "" => return,
        "crate" => base.clear(),
        "super" => drop(base.pop()),
        "self" => {}
        name => base.push(name.to_owned()),
    }
    match rest.strip_prefix("::") {
        Some(rest) => expand(rest, base, found),
        None => found.push(base.clone()),
    }
}

/// The parts of a list up to its closing brace.
fn branches(list: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => {
                parts.extend(list.get(from..at));
                break;
            }
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.extend(list.get(from..at));
                from = at + 1;
            }
            _ => {}
        }
    }
    parts
}

/// Groups of modules that reach each other.
fn cycles(graph: &Graph) -> Vec<Vec<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        graph.keys().map(|module| (module, reachable(graph, module))).collect();
    let reaches = |from: &Module, to: &Module| reach.get(from).is_some_and(|all| all.contains(to));
    let mut grouped: BTreeSet<&Module> = BTreeSet::new();
    let mut cycles = Vec::new();
    for module in graph.keys() {
        if grouped.contains(module) || !reaches(module, module) {
            continue;
        }
        let group: Vec<&Module> =
            graph.keys().filter(|other| reaches(module, other) && reaches(other, module)).collect();
        grouped.extend(&group);
        cycles.push(group.into_iter().cloned().collect());
    }
    cycles
}

fn reachable<'a>(graph: &'a Graph, from: &Module) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&Module> = graph.get(from).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if found.insert(module) {
            open.extend(graph.get(module).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(&format!("x/src/{path}"), text)).collect();
        check(&sources, &["x/src"]).problems
    }

    #[test]
    fn a_cycle_between_modules_is_a_problem() {
        let one_way = [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "pub struct B;")];
        assert!(problems(&one_way).is_empty());
        let cycle =
            [("a.rs", "use crate::{b::{B, C}, c};"), ("b.rs", "fn f() -> super::a::A {}"), ("c.rs", "")];
        assert_eq!(problems(&cycle), ["x/src: 2 modules import each other: a, b"]);
        let three =
            [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use super::a::A;")];
        assert_eq!(problems(&three).len(), 1);
    }

    #[test]
    fn a_module_and_its_children_may_know_each_other() {
        let family = [("a.rs", "mod b; use self::b::B;"), ("a/b.rs", "use super::A; use crate::a::C;")];
        assert!(problems(&family).is_empty());
        let siblings = [("a.rs", ""), ("a/b.rs", "use super::c::C;"), ("a/c.rs", "use crate::a::b::B;")];
        assert_eq!(problems(&siblings).len(), 1);
    }
}
