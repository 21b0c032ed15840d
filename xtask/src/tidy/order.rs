//! The one-way order of crates. Every arrow that is allowed stands in this file.

use super::Report;
use super::bans::CLIENTS;
use super::manifest::Package;

const TOOLKIT: &[&str] = &["octo-model", "octo-grants", "octo-toolkit"];
/// What reads documents of APIs, too.
const OPENAPI: &[&str] = &["octo-model", "octo-grants", "octo-toolkit", "octo-openapi"];
const HUB: &[&str] = &["octo-model", "octo-grants", "octo-toolkit", "octo-hub"];

/// What a crate of ours may see of the others.
enum May<'a> {
    See(&'a [&'a str]),
    /// The binary: everything.
    SeeAll,
}

/// A crate that is not named here is not placed yet, and that is a problem.
fn may(name: &str) -> Option<May<'static>> {
    Some(match name {
        "octo-model" | "octo-search" | "mcp-fixture" | "xtask" => May::See(&[]),
        "octo-grants" | "octo-wire" => May::See(&["octo-model"]),
        "octo-tests" => May::See(&["octo-model", "octo-wire"]),
        "octo-oauth" | "octo-toolkit" => May::See(&["octo-model", "octo-grants"]),
        "octo-hub" => May::See(TOOLKIT),
        "octo-openapi" => May::See(&["octo-model", "octo-grants", "octo-toolkit", "octo-search"]),
        "octo-upstream" => {
            May::See(&["octo-model", "octo-grants", "octo-toolkit", "octo-oauth", "octo-wire"])
        }
        "octo-store" => May::See(&["octo-model", "octo-grants", "octo-toolkit", "octo-hub", "octo-search"]),
        "octo-flow" | "octo-web" => May::See(HUB),
        "octo-mcp" => May::See(&["octo-model", "octo-grants", "octo-toolkit", "octo-hub", "octo-wire"]),
        "octoprox" => May::SeeAll,
        "tools-openapi" | "tools-forge" | "octo-openapi-source" => May::See(OPENAPI),
        // Its tools manage the servers and their logins.
        "tools-servers" => {
            May::See(&["octo-model", "octo-grants", "octo-toolkit", "octo-oauth", "octo-upstream"])
        }
        tools if tools.starts_with("tools-") => May::See(TOOLKIT),
        _ => return None,
    })
}

/// Crates of others that only some of ours may know.
const KEPT: &[(&str, &[&str])] = &[
    ("rmcp", &["octo-mcp", "octo-upstream", "mcp-fixture"]),
    // Who has these can ask other machines; what they ask through is checked in octo-grants.
    ("hyper", &["octo-grants", "octo-upstream", "octo-web", "octo-tests"]),
    ("hyper-util", &["octo-grants", "octo-upstream", "octo-web", "octo-tests"]),
    ("hyper-rustls", &["octo-grants"]),
    ("tokio-rustls", &["octo-grants"]),
];

/// Crates of others that one of ours may not know.
const REFUSED: &[(&str, &str)] = &[("octo-model", "tokio")];

pub fn check(packages: &[Package]) -> Report {
    let ours: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let problems = packages.iter().flat_map(|package| problems(package, &ours)).collect();
    Report { problems, notes: Vec::new() }
}

fn problems(package: &Package, ours: &[&str]) -> Vec<String> {
    let name = &package.name;
    let mut found = Vec::new();
    if !package.inherits_lints {
        found.push(format!("{name} does not take its lints from the workspace"));
    }
    let Some(may) = may(name) else {
        found.push(format!("{name} has no place in the order: give it one in xtask/src/tidy/order.rs"));
        return found;
    };
    for need in &package.needs {
        if ours.contains(&need.as_str()) && !sees(&may, need) {
            found.push(format!("{name} depends on {need}, which is against the order of crates"));
        }
        if !welcome(name, need) {
            found.push(format!("{name} depends on {need}, which is kept from it"));
        }
    }
    found
}

fn sees(may: &May, need: &str) -> bool {
    match may {
        May::See(list) => list.contains(&need),
        May::SeeAll => true,
    }
}

fn welcome(name: &str, need: &str) -> bool {
    let kept = KEPT.iter().find(|(krate, _)| *krate == need);
    kept.is_none_or(|(_, friends)| friends.contains(&name))
        && !REFUSED.contains(&(name, need))
        && !CLIENTS.contains(&need)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, needs: &[&str]) -> Package {
        let needs = needs.iter().map(|need| (*need).to_owned()).collect();
        Package { name: name.to_owned(), needs, has_features: false, inherits_lints: true }
    }

    fn verdict(name: &str, need: &str) -> usize {
        let mut packages = vec![package(name, &[need])];
        if may(need).is_some() {
            packages.push(package(need, &[]));
        }
        check(&packages)
            .problems
            .iter()
            .filter(|problem| problem.starts_with(&format!("{name} depends")))
            .count()
    }

    #[test]
    fn arrows() {
        for (name, need, refused) in [
            ("octo-grants", "octo-model", 0),
            ("octo-model", "octo-grants", 1),
            ("tools-time", "octo-toolkit", 0),
            ("tools-time", "octo-hub", 1),
            ("tools-time", "octo-mcp", 1),
            ("tools-time", "octo-wire", 1),
            ("tools-time", "tools-files", 1),
            ("tools-time", "rmcp", 1),
            ("tools-openapi", "octo-openapi", 0),
            ("tools-forge", "octo-openapi", 0),
            ("tools-time", "octo-openapi", 1),
            ("octo-openapi", "octo-toolkit", 0),
            ("octo-openapi", "octo-hub", 1),
            ("octo-flow", "octo-hub", 0),
            ("octo-flow", "octo-store", 1),
            ("octo-flow", "tools-files", 1),
            ("octo-upstream", "octo-openapi", 1),
            ("octo-openapi-source", "octo-openapi", 0),
            ("octo-openapi-source", "octo-upstream", 1),
            ("tools-servers", "octo-upstream", 0),
            ("tools-servers", "octo-hub", 1),
            ("tools-time", "octo-upstream", 1),
            ("octo-upstream", "octo-oauth", 0),
            ("octo-oauth", "octo-upstream", 1),
            ("octo-oauth", "octo-toolkit", 1),
            ("octo-hub", "octo-openapi", 1),
            ("octo-hub", "octo-wire", 1),
            ("octo-hub", "octo-store", 1),
            ("octo-hub", "octo-upstream", 1),
            ("octo-hub", "rmcp", 1),
            ("octo-wire", "octo-grants", 1),
            ("octo-mcp", "octo-wire", 0),
            ("octo-upstream", "octo-wire", 0),
            ("octo-upstream", "octo-hub", 1),
            ("octo-web", "octo-wire", 1),
            ("octo-web", "octo-mcp", 1),
            ("octo-tests", "octoprox", 1),
            ("octo-model", "tokio", 1),
            ("octoprox", "octo-wire", 0),
            ("octoprox", "tools-time", 0),
            ("octoprox", "rmcp", 1),
            ("octoprox", "hyper-util", 1),
            ("tools-web", "hyper-util", 1),
            ("tools-web", "hyper-rustls", 1),
            ("tools-web", "reqwest", 1),
            ("octo-grants", "reqwest", 1),
            ("octo-grants", "hyper-util", 0),
        ] {
            assert_eq!(verdict(name, need), refused, "{name} -> {need}");
        }
    }

    #[test]
    fn an_unplaced_crate() {
        let report = check(&[package("octo-utils", &[])]);
        assert_eq!(report.problems.len(), 1);
        assert!(report.problems[0].contains("no place"));
    }

    #[test]
    fn lints_of_its_own() {
        let report = check(&[Package { inherits_lints: false, ..package("tools-time", &[]) }]);
        assert!(report.problems[0].contains("lints"));
    }
}
