//! Git toolbox: runs the real `git`, returns structured replies, and runs no code of the repository.

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
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Grants for access to another repository: files, programs, SSH key and network.
type RemoteGrants = (Fs<Read>, Exec, (SshKey, Net));

/// Git toolbox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GitSettings {
    /// Allow `git_commit` to commit. If false, it only reports what it would do.
    pub allow_commit: bool,
    /// Allow `git_push` to push. If false, it only reports what it would do.
    pub allow_push: bool,
    /// Author name of commits. Default: the name in the git configuration of the repository or the user.
    pub user_name: Option<String>,
    /// Author email of commits. Default: the email in the git configuration of the repository or the user.
    pub user_email: Option<String>,
    /// Not a setting: the identity in the git configuration of the user.
    #[serde(skip)]
    pub user: UserIdentity,
}

impl GitSettings {
    fn identity(&self) -> identity::Identity {
        identity::Identity {
            name: self.user_name.clone(),
            email: self.user_email.clone(),
            user: self.user.clone(),
        }
    }
}

/// Tools of the domain `git`.
pub fn toolbox(settings: GitSettings) -> Toolbox {
    Toolbox::new("git", "Reads and changes git repositories of the workspace.")
        .using_workspace()
        .bound_to_machine()
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

/// Tools of the domain `ssh`.
pub fn ssh_toolbox() -> Toolbox {
    Toolbox::new("ssh", "The key of the workspace.").bound_to_machine().with(ssh_public_key::PublicKey)
}

#[cfg(test)]
mod tests;
