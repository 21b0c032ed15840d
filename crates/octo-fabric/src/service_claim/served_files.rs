//! Which files belong to the name of a workspace.

use serde::{Deserialize, Serialize};

/// The files that a worker serves as a workspace. Workers that have the same ones stand by for each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedFiles {
    pub id: String,
    /// A person has said that these follow other files.
    #[serde(default)]
    pub takes_over: bool,
}

impl ServedFiles {
    /// Whether these may follow the files with this id.
    pub fn may_follow(&self, id: &str) -> bool {
        self.takes_over || self.id == id
    }
}
