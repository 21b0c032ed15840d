//! What the operator decides: one file, the environment over it, flags over that.

mod check;
mod explain;
mod file;
mod find;
mod interpolate;
mod layers;
mod load;
mod model;
mod paths;
mod problem;
mod secret;
mod sections;
mod server;
mod servers_file;
mod show;
mod toolboxes;
mod variables;
mod workspace;

pub use check::binding;
pub use load::{Flags, Loaded, load};
pub use model::{Settings, schema};
pub use problem::{Problem, Problems};
pub use secret::{Secret, is_secret_name};
pub use sections::{Durability, Telemetry};
pub use server::{Era, Server};
pub use show::show;
pub use workspace::{HardLinks, Root, Sandbox};

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
