//! The git toolbox: the real `git`, with answers that need no parsing and nothing of the repository run unasked.

mod allow;
mod apply_patch;
mod blame;
mod branches;
mod changes;
mod command;
mod commit;
mod config;
mod diff;
mod fault;
mod git;
mod given;
mod hunks;
mod identity;
mod log;
mod parse;
mod push;
mod remote;
mod repo;
mod run;
mod sequence;
mod shadow;
mod show;
mod ssh_public_key;
mod status;
mod url;
mod value;

pub use identity::Person;

use octo_toolkit::fs::Read;
use octo_toolkit::{Exec, Fs, Net, SshKey, Toolbox};

/// What reaching another repository takes: files, programs, a key to show, and the network.
type Far = (Fs<Read>, Exec, (SshKey, Net));

/// What the operator allows, and who makes commits.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Whether commits are made; otherwise only told.
    pub allow_commit: bool,
    /// Whether anything is pushed; otherwise only told.
    pub allow_push: bool,
    pub user_name: Option<String>,
    pub user_email: Option<String>,
    /// Whose commits they are where neither these settings nor the repository say it.
    pub person: Person,
}

impl Settings {
    fn identity(&self) -> identity::Identity {
        identity::Identity {
            name: self.user_name.clone(),
            email: self.user_email.clone(),
            person: self.person.clone(),
        }
    }
}

/// The tools of the domain `git`.
pub fn toolbox(settings: Settings) -> Toolbox {
    Toolbox::new("git", "Looks at and changes git repositories of the workspace.")
        .with(status::Status)
        .with(diff::Diff)
        .with(log::Log)
        .with(blame::Blame)
        .with(git::Any(settings.clone()))
        .with(show::Show)
        .with(branches::Branches)
        .with(apply_patch::ApplyPatch)
        .with(commit::Commit(settings.clone()))
        .with(push::Push(settings))
        .with(changes::Changes)
}

/// The tools of the domain `ssh`.
pub fn ssh_toolbox() -> Toolbox {
    Toolbox::new("ssh", "The key of the workspace.").with(ssh_public_key::PublicKey)
}

#[cfg(test)]
mod tests;
