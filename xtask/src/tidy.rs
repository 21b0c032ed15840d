//! Checks that the compiler does not make: dependencies between crates, code sizes, lint allowances, deployment files, metrics.

mod attributes;
mod banned_clients;
mod banned_names;
mod cargo_features;
mod cargo_manifests;
mod code_sizes;
mod command_names;
mod crate_order;
mod deployment_files;
mod document_paths;
mod file_layout;
mod import_cycles;
mod inherent_impls;
mod lint_allowances;
mod metric_names;
mod rust_sources;
mod socket_use;

use anyhow::{Result, bail};
use std::path::Path;

/// Report of a rule: notes, and problems that fail the run.
#[derive(Debug, Default)]
pub struct Report {
    pub notes: Vec<String>,
    pub problems: Vec<String>,
}

impl Report {
    fn merge(mut self, other: Report) -> Report {
        self.notes.extend(other.notes);
        self.problems.extend(other.problems);
        self
    }
}

pub fn run(root: &Path) -> Result<()> {
    let report = check_all(root)?;
    for note in &report.notes {
        println!("{note}");
    }
    for problem in &report.problems {
        eprintln!("tidy: {problem}");
    }
    match report.problems.len() {
        0 => Ok(()),
        count => bail!("{count} problems"),
    }
}

fn check_all(root: &Path) -> Result<Report> {
    let packages = cargo_manifests::read_all(root)?;
    let sources = rust_sources::read_all(root)?;
    let deny = std::fs::read_to_string(root.join("deny.toml"))?;
    let exceptions = std::fs::read_to_string(root.join("xtask/exceptions.txt"))?;
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    let rules = [
        crate_order::check(&packages),
        cargo_features::check(&packages, &sources),
        code_sizes::check(&sources, &exceptions),
        lint_allowances::check(&sources),
        socket_use::check(&sources, socket_use::SOCKET_EXCEPTIONS),
        banned_clients::check(&deny)?,
        banned_names::check(&sources),
        document_paths::check(&architecture, &sources),
        file_layout::check(&sources),
        import_cycles::check(&sources, &import_cycles::SCOPES),
        inherent_impls::check(&sources, &inherent_impls::EXCEPTIONS),
        command_names::check(&sources, command_names::EXCEPTIONS),
        deployment_files::Deployment::read(root)?.check(),
        metric_names::check(root, &sources)?,
    ];
    Ok(rules.into_iter().fold(Report::default(), Report::merge))
}

#[cfg(test)]
mod tests {
    /// The repository itself passes.
    #[test]
    fn this_tree() {
        let root = crate::workspace_root::find_workspace().unwrap();
        let report = super::check_all(&root).unwrap();
        assert!(report.problems.is_empty(), "{}", report.problems.join("\n"));
    }
}
