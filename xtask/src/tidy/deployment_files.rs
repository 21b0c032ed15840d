//! Checks that the variables, ports, directories and versions in the deployment files exist in the project.

use super::Report;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::Path;
use toml::{Table, Value};

/// Variables of Docker, Compose, the images and XDG; every other one must be a setting.
const FOREIGN_VARIABLES: &[&str] = &[
    "BINARY",
    "COMPOSE_PROFILES",
    "CONFIG_PATH",
    "HOME",
    "OCTOPROX_IMAGE_VARIANT",
    "PATH",
    "PGID",
    "POSTGRES_PASSWORD",
    "PUID",
    "SEARXNG_SECRET",
    "UV_VERSION",
    "WITHOUT",
    "XDG_CONFIG_HOME",
];

/// The deployment files, and what they are checked against.
pub struct Deployment {
    pub dockerfile: String,
    pub compose: String,
    pub env: String,
    pub dockerignore: String,
    /// docs/reference/settings.md, which names every variable.
    pub settings: String,
    /// The workspace's Cargo.toml.
    pub manifest: Table,
}

impl Deployment {
    pub fn read(root: &Path) -> Result<Self> {
        let read = |name: &str| std::fs::read_to_string(root.join(name)).context(name.to_owned());
        Ok(Self {
            dockerfile: read("Dockerfile")?,
            compose: read("compose.yaml")?,
            env: read(".env.example")?,
            dockerignore: read(".dockerignore")?,
            settings: read("docs/reference/settings.md")?,
            manifest: read("Cargo.toml")?.parse()?,
        })
    }

    pub fn check(&self) -> Report {
        let mut problems = Vec::new();
        let known: BTreeSet<&str> =
            words_between(&self.settings, '`').filter(|word| is_variable(word)).collect();
        for (file, text) in
            [("Dockerfile", &self.dockerfile), ("compose.yaml", &self.compose), (".env.example", &self.env)]
        {
            let unknown = variables(text).into_iter().filter(|name| !known.contains(name));
            let unknown = unknown.filter(|name| !FOREIGN_VARIABLES.contains(name));
            problems.extend(unknown.map(|name| format!("{file} sets {name}, which is not a setting")));
        }
        let version = self.workspace("package").and_then(|package| package.get("rust-version")?.as_str());
        let image = format!("FROM rust:{}-slim-", version.unwrap_or_default());
        if !self.dockerfile.contains(&image) {
            problems.push(format!("Dockerfile does not build with the workspace's rust-version: {image}"));
        }
        problems.extend(self.ports());
        problems.extend(self.folders());
        problems.extend(self.members());
        Report { problems, notes: Vec::new() }
    }

    /// The hub's port must be exposed, published and probed.
    fn ports(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let image = word_after(&self.dockerfile, "OCTOPROX_PORT=");
        if !self.dockerfile.contains(&format!("EXPOSE {image} 3100\n")) {
            problems.push(format!("Dockerfile does not expose port {image}"));
        }
        let service = word_after(&self.compose, "OCTOPROX_PORT: ");
        if !self.compose.contains(&format!("127.0.0.1:{service}:{service}\n")) {
            problems.push(format!("compose.yaml does not publish port {service}"));
        }
        problems
    }

    /// Directories that a variable names inside the container must be created by the image and mounted.
    fn folders(&self) -> Vec<String> {
        let named = self.compose.lines().filter_map(|line| line.trim().split_once(": /mnt/"));
        let mut problems = Vec::new();
        for (variable, folder) in named {
            let (folder, in_root) = (format!("/mnt/{folder}"), format!(" mnt/{folder}"));
            if !self.compose.contains(&format!(":{folder}\n"))
                && !self.compose.contains(&format!(":{folder}:ro\n"))
            {
                problems.push(format!("compose.yaml sets {variable} to {folder} and mounts nothing there"));
            }
            if !self.dockerfile.contains(&in_root) {
                problems.push(format!("Dockerfile does not create {folder}"));
            }
        }
        problems
    }

    /// The build must see every member of the workspace.
    fn members(&self) -> Vec<String> {
        let seen = |name: &str| self.dockerignore.lines().any(|line| line.strip_prefix('!') == Some(name));
        let members = self.workspace("members").and_then(Value::as_array);
        let members = members.into_iter().flatten().filter_map(Value::as_str);
        let folders: BTreeSet<&str> = members.filter_map(|member| member.split('/').next()).collect();
        let hidden = folders.into_iter().chain(["Cargo.toml", "Cargo.lock"]).filter(|name| !seen(name));
        hidden.map(|name| format!(".dockerignore excludes {name}, which the build needs")).collect()
    }

    fn workspace(&self, key: &str) -> Option<&Value> {
        self.manifest.get("workspace")?.get(key)
    }
}

/// Texts between pairs of a delimiter.
fn words_between(text: &str, mark: char) -> impl Iterator<Item = &str> {
    text.split(mark).skip(1).step_by(2)
}

/// Whether a word looks like an environment variable.
fn is_variable(word: &str) -> bool {
    let plain = word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    word.len() >= 4 && plain && word.starts_with(|first: char| first.is_ascii_uppercase())
}

/// Variables that a file sets (`NAME=`, `NAME: `, even if commented out) or reads (`${NAME`).
fn variables(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let line = line.trim_start_matches([' ', '#']);
        let line = ["ENV ", "ARG "].iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line);
        found.extend(line.split(['=', ':']).next().filter(|_| line.contains(['=', ':'])));
        found.extend(line.split("${").skip(1).filter_map(|rest| rest.split([':', '}']).next()));
    }
    found.retain(|word| is_variable(word));
    found
}

/// The word that follows a name.
fn word_after<'a>(text: &'a str, name: &str) -> &'a str {
    text.split_once(name).and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real() -> Deployment {
        Deployment::read(&crate::workspace_root::find_workspace().unwrap()).unwrap()
    }

    #[test]
    fn variables_are_found_wherever_they_are_set() {
        let text =
            "ENV ONE_A=1 \\\n    TWO_B=2\n#THREE=\n  FOUR: ${FIVE:?Set it}\n# A word: no\nRUN x=$(SIX)\n";
        assert_eq!(variables(text), BTreeSet::from(["ONE_A", "TWO_B", "THREE", "FOUR", "FIVE"]));
    }

    #[test]
    fn what_is_not_there_is_a_problem() {
        assert_eq!(real().check().problems, [""; 0]);
        type Change = fn(&mut Deployment);
        let changes: [(Change, &str); 6] = [
            (|it| it.env.push_str("OCTOPROX_NO_SUCH=1\n"), "sets OCTOPROX_NO_SUCH"),
            (|it| it.settings = it.settings.replace("OCTOPROX_STATE_DIR", ""), "sets OCTOPROX_STATE_DIR"),
            (|it| it.dockerfile = it.dockerfile.replace("FROM rust:1.", "FROM rust:0."), "rust-version"),
            (|it| it.dockerfile = it.dockerfile.replace("EXPOSE 7", "EXPOSE 8"), "does not expose"),
            (|it| it.compose = it.compose.replace(":/mnt/repos\n", ":/mnt/other\n"), "mounts nothing"),
            (|it| it.dockerignore = it.dockerignore.replace("!xtask\n", ""), "excludes xtask"),
        ];
        for (change, wanted) in changes {
            let mut files = real();
            change(&mut files);
            let problems = files.check().problems;
            assert!(problems.iter().any(|problem| problem.contains(wanted)), "{wanted}: {problems:?}");
        }
    }
}
