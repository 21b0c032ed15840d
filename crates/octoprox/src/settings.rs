//! What the operator decides: one file, the environment over it, flags over that.

mod api_keys;
mod applied_servers;
mod approval_guard;
mod env_variables;
mod interpolation;
mod load_settings;
mod reloadable;
pub mod replace_file;
mod resolve_paths;
mod schema_problems;
mod secret_masking;
mod section_models;
mod server_auth;
mod server_model;
pub mod server_plan;
mod servers_file;
mod settings_check;
mod settings_choice;
pub mod settings_edit;
mod settings_file;
pub mod settings_format;
mod settings_layers;
pub mod settings_locations;
mod settings_model;
mod settings_preview;
mod settings_problem;
mod settings_view;
mod settings_watcher;
mod toolbox_switches;
mod trust_store;
mod unset_variables;
mod workspace_choice;
mod workspace_models;

pub use applied_servers::AppliedServers;
pub use load_settings::{Flags, LoadedSettings, check_server, load, load_for_comparison};
pub use secret_masking::{is_secret_name, mask_url};
pub use section_models::{Durability, Telemetry};
pub use server_auth::{AuthKind, ServerAuth};
pub use server_model::{Connect, Era, Kind, Server, ServerSandbox, Share};
pub use server_plan::{Action, ServerChange, Servers};
pub use settings_check::{MAX_SERVER_NAME_LEN, is_reserved_name, listen_address, unauthenticated_binding};
pub use settings_choice::SettingsChoice;
pub use settings_file::SettingsFile;
pub use settings_model::{Settings, settings_schema};
pub use settings_preview::Preview;
pub use settings_problem::{SettingOrigin, SettingsProblem, SettingsProblems};
pub use settings_view::settings_view;
pub use settings_watcher::{ReloadPlan, SettingsReader, SettingsWatcher};
pub use trust_store::{Approval, TrustRecord, TrustStore};
pub use unset_variables::UnsetVariables;
pub use workspace_choice::{WORKSPACE_HINT as WORKSPACE_REMEDY, WorkspaceChoice, unfit_reason};
pub use workspace_models::{HardLinks, Root, Sandbox};

/// What the process was started in: its environment and its folder. Tests make their own.
#[derive(Clone, Default)]
pub struct Environment {
    pub variables: std::collections::BTreeMap<String, String>,
    pub current_dir: std::path::PathBuf,
}

impl Environment {
    /// The real one. A variable that is not valid Unicode cannot be one of ours.
    pub fn current() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self { variables: variables.collect(), current_dir: std::env::current_dir().unwrap_or_default() }
    }

    /// A variable, unless it is empty: that is how containers pass on what nobody has set.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}
