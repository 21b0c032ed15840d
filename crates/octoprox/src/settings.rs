//! Settings: one file, overridden by environment variables, overridden by flags.

pub(crate) mod approval;
pub(crate) mod check;
pub(crate) mod edit;
pub(crate) mod load;
pub(crate) mod model;
pub(crate) mod reload;
mod settings_view;
mod workspace_choice;

pub use approval::script_scope::ScriptScope;
pub use approval::settings_choice::SettingsChoice;
pub use approval::settings_preview::Preview;
pub use approval::trust_store::{Approval, TrustRecord, TrustStore};
pub use check::settings_check::{
    MAX_SERVER_NAME_LEN, is_reserved_name, listen_address, unauthenticated_binding,
};
pub use check::settings_problem::{SettingOrigin, SettingsProblem, SettingsProblems};
pub use load::env_variables::parse_bool;
pub use load::interpolation::WORKSPACE_VARIABLE;
pub use load::load_settings::{LoadedSettings, check_server, load, load_for_comparison};
pub use load::seal_keys::seal_keys;
pub use load::secret_references::{SecretSettings, open_default_secret_store};
pub use load::secret_store::{SecretStore, is_secret_slot, is_secret_store_name};
pub use load::settings_file::SettingsFile;
pub use load::settings_locations::{named_file, user_file};
pub use load::settings_sources::Flags;
pub use load::state_dir::state_dir;
pub use load::unset_variables::UnsetVariables;
pub use model::secret_masking::{is_secret_name, mask_url};
pub use model::section_models::Telemetry;
pub use model::server_auth::{AuthKind, ServerAuth};
pub use model::server_model::{Connect, Era, Kind, QuestionKind, Server, ServerSandbox, Share};
pub use model::settings_model::{Settings, settings_schema};
pub use model::workspace_models::Root;
pub use reload::applied_servers::AppliedServers;
pub use reload::server_plan::{Action, ServerChange, Servers};
pub use reload::settings_watcher::{ReloadPlan, SettingsReader, SettingsWatcher};
pub use settings_view::settings_view;
pub use workspace_choice::{WORKSPACE_HINT as WORKSPACE_REMEDY, WorkspaceChoice, unfit_reason};

/// Environment variables and current directory of the process. Tests construct their own.
#[derive(Clone, Default)]
pub struct Environment {
    pub variables: std::collections::BTreeMap<String, String>,
    pub current_dir: std::path::PathBuf,
}

impl Environment {
    /// Returns the environment of this process. Skips variables that are not valid Unicode.
    pub fn current() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self { variables: variables.collect(), current_dir: std::env::current_dir().unwrap_or_default() }
    }

    /// Returns a variable unless it is empty: containers pass unset variables as empty ones.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}
