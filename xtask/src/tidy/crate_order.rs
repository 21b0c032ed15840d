//! Layering of the crates. Every allowed dependency is listed in this file.

use super::Report;
use super::banned_clients::BANNED_CLIENTS;
use super::cargo_manifests::Package;

const TOOLKIT_DEPS: &[&str] = &["octo-model", "octo-ports", "octo-grants", "octo-toolkit"];
/// Dependencies of crates that read OpenAPI documents, too.
const OPENAPI_DEPS: &[&str] = &["octo-model", "octo-ports", "octo-grants", "octo-toolkit", "octo-openapi"];

const FABRIC_DEPS: &[&str] = &["octo-model", "octo-admission", "octo-ports", "octo-grants", "octo-toolkit"];
const MEMORY_DEPS: &[&str] =
    &["octo-model", "octo-ports", "octo-grants", "octo-toolkit", "octo-search", "octo-embed"];
const HUB_OWN_DEPS: &[&str] = &[
    "octo-model",
    "octo-admission",
    "octo-ports",
    "octo-grants",
    "octo-toolkit",
    "octo-search",
    "octo-embed",
    "octo-code",
];

/// Dependencies of crates that call tools through the hub.
const HUB_DEPS: &[&str] =
    &["octo-model", "octo-admission", "octo-ports", "octo-grants", "octo-toolkit", "octo-hub"];

/// Workspace crates that a crate may depend on.
enum AllowedDependencies<'a> {
    Only(&'a [&'a str]),
    /// The binary: everything.
    All,
}

/// Returns None for a crate that is not listed, which is a problem.
fn allowed_dependencies(name: &str) -> Option<AllowedDependencies<'static>> {
    Some(match name {
        "octo-model" | "octo-search" | "octo-embed" | "mcp-fixture" | "xtask" => {
            AllowedDependencies::Only(&[])
        }
        "octo-admission" | "octo-ports" | "octo-wire" => AllowedDependencies::Only(&["octo-model"]),
        "octo-grants" => AllowedDependencies::Only(&["octo-model", "octo-ports"]),
        // Its tests compare the replies of both backends.
        "octo-postgres" => AllowedDependencies::Only(&[
            "octo-model",
            "octo-admission",
            "octo-ports",
            "octo-grants",
            "octo-search",
            "octo-store",
        ]),
        "octo-fabric" => AllowedDependencies::Only(FABRIC_DEPS),
        "octo-hub" => AllowedDependencies::Only(HUB_OWN_DEPS),
        "octo-store" => AllowedDependencies::Only(&["octo-model", "octo-ports", "octo-search"]),
        "octo-catalogue" => AllowedDependencies::Only(&["octo-model", "octo-search"]),
        "octo-tests" => AllowedDependencies::Only(&["octo-model", "octo-wire"]),
        "octo-code" => AllowedDependencies::Only(&["octo-model", "octo-grants"]),
        "octo-oauth" | "octo-toolkit" => {
            AllowedDependencies::Only(&["octo-model", "octo-ports", "octo-grants"])
        }
        "octo-openapi" => AllowedDependencies::Only(&[
            "octo-model",
            "octo-ports",
            "octo-grants",
            "octo-toolkit",
            "octo-search",
        ]),
        "octo-upstream" => AllowedDependencies::Only(&[
            "octo-model",
            "octo-admission",
            "octo-ports",
            "octo-grants",
            "octo-toolkit",
            "octo-oauth",
            "octo-wire",
        ]),
        "octo-flow" => AllowedDependencies::Only(HUB_DEPS),
        "octo-web" => AllowedDependencies::Only(&[
            "octo-model",
            "octo-ports",
            "octo-grants",
            "octo-toolkit",
            "octo-hub",
            "octo-catalogue",
        ]),
        "octo-mcp" => AllowedDependencies::Only(&[
            "octo-model",
            "octo-admission",
            "octo-ports",
            "octo-grants",
            "octo-toolkit",
            "octo-hub",
            "octo-wire",
        ]),
        "octoprox" => AllowedDependencies::All,
        "tools-openapi" | "tools-forge" | "octo-openapi-source" => AllowedDependencies::Only(OPENAPI_DEPS),
        // Its tools manage the servers and their logins.
        "tools-servers" => AllowedDependencies::Only(&[
            "octo-model",
            "octo-ports",
            "octo-grants",
            "octo-toolkit",
            "octo-oauth",
            "octo-upstream",
            "octo-catalogue",
        ]),
        "tools-memory" => AllowedDependencies::Only(MEMORY_DEPS),
        tools if tools.starts_with("tools-") => AllowedDependencies::Only(TOOLKIT_DEPS),
        _ => return None,
    })
}

/// External crates that only some workspace crates may use.
const RESTRICTED_CRATES: &[(&str, &[&str])] = &[
    ("rmcp", &["octo-mcp", "octo-upstream", "mcp-fixture"]),
    // These can open connections; octo-grants checks them.
    ("hyper", &["octo-grants", "octo-upstream", "octo-web", "octo-tests"]),
    ("hyper-util", &["octo-grants", "octo-upstream", "octo-web", "octo-tests"]),
    ("hyper-rustls", &["octo-grants"]),
    ("tokio-rustls", &["octo-grants"]),
];

/// External crates that a workspace crate may not use.
const FORBIDDEN_DEPENDENCIES: &[(&str, &str)] = &[("octo-model", "tokio")];

pub fn check(packages: &[Package]) -> Report {
    let ours: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let problems = packages.iter().flat_map(|package| problems(package, &ours)).collect();
    Report { problems, notes: Vec::new() }
}

fn problems(package: &Package, ours: &[&str]) -> Vec<String> {
    let name = &package.name;
    let mut found = Vec::new();
    if !package.inherits_lints {
        found.push(format!("{name} does not inherit its lints from the workspace"));
    }
    let Some(may) = allowed_dependencies(name) else {
        found.push(format!("{name} is not listed: add it to xtask/src/tidy/crate_order.rs"));
        return found;
    };
    for need in &package.dependencies {
        if ours.contains(&need.as_str()) && !permits(&may, need) {
            found.push(format!("{name} depends on {need}, which violates the layering of crates"));
        }
        if !is_permitted(name, need) {
            found.push(format!("{name} depends on {need}, which it may not use"));
        }
    }
    found
}

fn permits(may: &AllowedDependencies, need: &str) -> bool {
    match may {
        AllowedDependencies::Only(list) => list.contains(&need),
        AllowedDependencies::All => true,
    }
}

fn is_permitted(name: &str, need: &str) -> bool {
    let kept = RESTRICTED_CRATES.iter().find(|(krate, _)| *krate == need);
    kept.is_none_or(|(_, friends)| friends.contains(&name))
        && !FORBIDDEN_DEPENDENCIES.contains(&(name, need))
        && !BANNED_CLIENTS.contains(&need)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        let dependencies = dependencies.iter().map(|need| (*need).to_owned()).collect();
        Package { name: name.to_owned(), dependencies, has_features: false, inherits_lints: true }
    }

    fn verdict(name: &str, need: &str) -> usize {
        let mut packages = vec![package(name, &[need])];
        if allowed_dependencies(need).is_some() {
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
            ("octo-grants", "octo-ports", 0),
            ("octo-ports", "octo-model", 0),
            ("octo-ports", "octo-grants", 1),
            ("octo-store", "octo-ports", 0),
            ("octo-store", "octo-hub", 1),
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
            ("octo-hub", "octo-code", 0),
            ("octo-code", "octo-grants", 0),
            ("octo-code", "octo-toolkit", 1),
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
        assert!(report.problems[0].contains("not listed"));
    }

    #[test]
    fn lints_of_its_own() {
        let report = check(&[Package { inherits_lints: false, ..package("tools-time", &[]) }]);
        assert!(report.problems[0].contains("lints"));
    }
}
