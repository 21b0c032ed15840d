//! Checks what the compiler does not: the order of crates, sizes, lint allowances, and the files of a deployment.

mod attributes;
mod bans;
mod deployment;
mod dials;
mod doors;
mod features;
mod manifest;
mod order;
mod sizes;
mod sources;

use anyhow::{Result, bail};
use std::path::Path;

/// What a rule has to say: lines to read, and lines that fail the run.
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
    let report = inspect(root)?;
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

fn inspect(root: &Path) -> Result<Report> {
    let packages = manifest::read_all(root)?;
    let sources = sources::read_all(root)?;
    let deny = std::fs::read_to_string(root.join("deny.toml"))?;
    let exceptions = std::fs::read_to_string(root.join("xtask/exceptions.txt"))?;
    let rules = [
        order::check(&packages),
        features::check(&packages, &sources),
        sizes::check(&sources, &exceptions),
        doors::check(&sources),
        dials::check(&sources, dials::ELSEWHERE),
        bans::check(&deny)?,
        deployment::Deployment::read(root)?.check(),
    ];
    Ok(rules.into_iter().fold(Report::default(), Report::merge))
}

#[cfg(test)]
mod tests {
    /// The real tree is tidy.
    #[test]
    fn this_tree() {
        let root = crate::root::find().unwrap();
        let report = super::inspect(&root).unwrap();
        assert!(report.problems.is_empty(), "{}", report.problems.join("\n"));
    }
}
