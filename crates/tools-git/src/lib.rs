//! The git toolbox: the real `git`, with answers that need no parsing and nothing of the repository run unasked.

mod git;
mod git_apply_patch;
mod git_blame;
mod git_branches;
mod git_changes;
mod git_commit;
mod git_config;
mod git_defaults;
mod git_diff;
mod git_log;
mod git_push;
mod git_show;
mod git_status;
mod identity;
mod program;
mod remote_access;
mod remote_url;
mod repo;
mod safe_config_dir;
mod sequencer;
mod ssh_public_key;
mod structured_diff;
mod subcommands;

pub use identity::UserIdentity;

use octo_toolkit::fs::Read;
use octo_toolkit::{Exec, Fs, Net, SshKey, Toolbox};

/// What reaching another repository takes: files, programs, a key to show, and the network.
type RemoteGrants = (Fs<Read>, Exec, (SshKey, Net));

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
    pub user: UserIdentity,
}

impl Settings {
    fn identity(&self) -> identity::Identity {
        identity::Identity {
            name: self.user_name.clone(),
            email: self.user_email.clone(),
            user: self.user.clone(),
        }
    }
}

/// The tools of the domain `git`.
pub fn toolbox(settings: Settings) -> Toolbox {
    Toolbox::new("git", "Looks at and changes git repositories of the workspace.")
        .with(git_status::Status)
        .with(git_diff::Diff)
        .with(git_log::Log)
        .with(git_blame::Blame)
        .with(git::GitTool(settings.clone()))
        .with(git_show::Show)
        .with(git_branches::Branches)
        .with(git_apply_patch::ApplyPatch)
        .with(git_commit::Commit(settings.clone()))
        .with(git_push::Push(settings))
        .with(git_changes::Changes)
}

/// The tools of the domain `ssh`.
pub fn ssh_toolbox() -> Toolbox {
    Toolbox::new("ssh", "The key of the workspace.").with(ssh_public_key::PublicKey)
}

#[cfg(test)]
mod tests;
