//! The files that have to change, worked out before the first of them is touched.

use super::Present;
use super::answers::{Answers, CAREFUL};
use crate::cli::change::Change;
use crate::cli::failure::Failure;
use crate::cli::import::{Taken, known, strange, take};
use crate::cli::programs::ourselves;
use crate::cli::servers::Target;
use crate::clients::{Client, Registration, Vault, register};
use crate::settings::{Flags, World};
use std::path::{Path, PathBuf};

/// All changes, each of which changes something, and what they mean.
pub struct Steps {
    pub all: Vec<Change>,
    pub taken: Taken,
    pub registered: Vec<Client>,
}

impl Steps {
    /// What cannot be done for one client is a problem to tell of and no reason to stop.
    pub fn plan(
        answers: &Answers,
        settings: PathBuf,
        present: Vec<Present>,
        world: &World,
        problems: &mut Vec<String>,
    ) -> Result<Self, Failure> {
        let flags = Flags { config: Some(settings.clone()), ..Flags::default() };
        let mut steps = Self { all: Vec::new(), taken: Taken::default(), registered: Vec::new() };
        if !settings.exists() {
            steps.add(Change { path: settings.clone(), before: None, after: written(answers) });
        }
        let mut target = Target::list(&flags, world)?;
        let mut vault = Vault::default();
        let known = known(world, &flags);
        for client in present.iter().filter(|client| answers.import.contains(&client.place.client)) {
            let Some(reading) = &client.reading else { continue };
            strange(&reading.found.strange, &client.place);
            let taken = take(&mut target, reading.found.entries.clone(), &known, &mut vault)?;
            steps.taken.added.extend(taken.added);
            steps.taken.skipped.extend(taken.skipped);
            steps.taken.variables.extend(taken.variables);
        }
        steps.add(target.change());
        let program = ourselves(world.variable("PATH"))?.display().to_string();
        // The file is named, so that a project's own octoprox.yaml decides nothing.
        let args = ["stdio".to_owned(), "--config".to_owned(), settings.display().to_string()];
        for Present { place, reading } in present {
            if !answers.register.contains(&place.client) {
                continue;
            }
            match register(&place, reading.as_ref(), &program, &args) {
                Ok(Registration::Already(_)) => {}
                Ok(Registration::Write(after)) => {
                    steps.registered.push(place.client);
                    steps.add(Change {
                        path: place.path,
                        before: reading.map(|reading| reading.text),
                        after,
                    });
                }
                Err(why) => problems.push(refused(&place.path, place.client, &why, &program, &args)),
            }
        }
        Ok(steps)
    }

    fn add(&mut self, change: Change) {
        if !change.is_none() {
            self.all.push(change);
        }
    }
}

fn refused(path: &Path, client: Client, why: &str, program: &str, args: &[String]) -> String {
    let (title, args) = (client.title(), args.join(" "));
    format!("{title} is left alone: {}: {why}. Add octoprox there yourself: {program} {args}", path.display())
}

/// The settings of somebody who begins, with what else there is in comments.
fn written(answers: &Answers) -> String {
    let workspace = match &answers.workspace {
        Some(folder) => format!("workspace: {}\n", serde_json::Value::from(folder.as_str())),
        None => "# workspace: ~/projects\n".to_owned(),
    };
    let about =
        |toolbox: &str| CAREFUL.iter().find(|(name, _)| *name == toolbox).map_or("", |(_, about)| about);
    let switch =
        |(toolbox, on): &(&str, bool)| format!("  {:21}# {}\n", format!("{toolbox}: {on}"), about(toolbox));
    let switches: String = answers.switches.iter().map(switch).collect();
    format!(
        "# Settings of octoprox. All of them are optional. `octoprox config schema` describes every one,
# `octoprox config check` says what is wrong, `octoprox config show` what is in force.

# Folder that tools work in. Without it: the folder that octoprox is started in,
# unless that is / or your home directory.
{workspace}
# Toolboxes that are off until you want them. All others are on.
toolboxes:
{switches}
# MCP servers stand in servers.yaml beside this file; `octoprox servers add` adds one.

# Where `octoprox serve` listens. Clients that start octoprox themselves need no port.
# listen:
#   host: 127.0.0.1
#   port: 7000

# Commits and pushes are only shown until they are allowed.
# git:
#   allow_commit: true
#   allow_push: true

# Private addresses that tools may reach; public ones need no entry.
# net:
#   allow: [wiki.local, 10.0.0.0/8]
"
    )
}

/// A text that is refused by its own reader would be a poor beginning.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::file;

    #[test]
    fn what_is_written_can_be_read() {
        for (workspace, on) in [(None, false), (Some("/srv/a b".to_owned()), true)] {
            let switches = CAREFUL.iter().map(|(name, _)| (*name, on)).collect();
            let answers =
                Answers { workspace: workspace.clone(), switches, import: vec![], register: vec![] };
            let text = written(&answers);
            let tree = file::parse_as(Path::new("octoprox.yaml"), &text).unwrap();
            let settings: crate::settings::Settings = serde_json::from_value(tree).unwrap();
            assert_eq!(settings.toolboxes.shell, on);
            assert_eq!(settings.workspace, workspace.map(PathBuf::from));
            assert!(text.lines().all(|line| line.chars().count() <= 100));
        }
    }
}
