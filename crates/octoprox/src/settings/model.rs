//! Settings types, with the defaults and documentation of every key.

pub(crate) mod secret_masking;
pub(crate) mod section_models;
pub(crate) mod server_auth;
pub(crate) mod server_model;
pub(crate) mod settings_model;
pub(crate) mod toolbox_switches;
pub(crate) mod workspace_models;
