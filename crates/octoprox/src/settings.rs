//! What the operator decides: one file, the environment over it, flags over that.

mod applied;
mod check;
mod choice;
pub mod edit;
mod explain;
pub mod file;
pub mod find;
mod guard;
mod interpolate;
mod keys;
mod layers;
mod live;
mod load;
mod missing;
mod model;
mod paths;
pub mod plan;
mod preview;
mod problem;
pub mod replace;
mod secret;
mod sections;
mod server;
mod server_auth;
mod servers_file;
mod settings_file;
mod show;
mod toolboxes;
mod trust;
mod variables;
mod watched;
mod workspace;
mod workspace_choice;

pub use applied::Applied;
pub use check::{LONGEST, binding, is_taken, listen_address};
pub use choice::Choice;
pub use load::{Flags, Loaded, check_one, load, load_to_compare};
pub use missing::Missing;
pub use model::{Settings, schema};
pub use plan::{Action, Change, Servers};
pub use preview::Preview;
pub use problem::{Origin, Problem, Problems};
pub use secret::{Secret, is_secret_name, without_secrets};
pub use sections::{Durability, Telemetry};
pub use server::{Connect, Era, Kind, Server, ServerSandbox, Share};
pub use server_auth::{AuthKind, ServerAuth};
pub use settings_file::SettingsFile;
pub use show::show;
pub use trust::{Approval, TrustRecord, TrustStore};
pub use watched::{Reloaded, Rereader, Watched};
pub use workspace::{HardLinks, Root, Sandbox};
pub use workspace_choice::{REMEDY as WORKSPACE_REMEDY, WorkspaceChoice, unfit};

/// What the process was started in: its environment and its folder. Tests make their own.
#[derive(Clone, Default)]
pub struct World {
    pub variables: std::collections::BTreeMap<String, String>,
    pub folder: std::path::PathBuf,
}

impl World {
    /// The real one. A variable that is not valid Unicode cannot be one of ours.
    pub fn real() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self { variables: variables.collect(), folder: std::env::current_dir().unwrap_or_default() }
    }

    /// A variable, unless it is empty: that is how containers pass on what nobody has set.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}
