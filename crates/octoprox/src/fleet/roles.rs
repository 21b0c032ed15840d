//! Roles of a node.

use clap::ValueEnum;

/// What a node of a fleet does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Takes calls: MCP, REST and the admin API.
    Front,
    /// Runs what cannot move: the tools of a workspace, the browser, and servers that are programs.
    Worker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    pub front: bool,
    pub worker: bool,
}

impl Roles {
    pub const ALL: Self = Self { front: true, worker: true };
    pub const WORKER: Self = Self { front: false, worker: true };

    /// The roles of a list; all of them, if it is empty.
    pub fn new(roles: &[Role]) -> Self {
        if roles.is_empty() {
            return Self::ALL;
        }
        Self { front: roles.contains(&Role::Front), worker: roles.contains(&Role::Worker) }
    }

    pub fn names(self) -> Vec<String> {
        let names = [("front", self.front), ("worker", self.worker)];
        names.into_iter().filter(|(_, has)| *has).map(|(name, _)| name.to_owned()).collect()
    }
}
