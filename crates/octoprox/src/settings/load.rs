//! Loading: files, environment variables and flags, in order of precedence.

pub(crate) mod api_keys;
pub(crate) mod env_variables;
pub(crate) mod interpolation;
pub(crate) mod load_settings;
pub(crate) mod package_digests;
pub(crate) mod resolve_paths;
pub(crate) mod seal_keys;
pub(crate) mod secret_references;
pub(crate) mod secret_store;
pub(crate) mod servers_file;
pub(crate) mod settings_file;
pub(crate) mod settings_format;
pub(crate) mod settings_layers;
pub(crate) mod settings_locations;
pub(crate) mod settings_sources;
pub(crate) mod state_dir;
pub(crate) mod unset_variables;
