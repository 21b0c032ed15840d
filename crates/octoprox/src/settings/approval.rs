//! Approval of the settings files of a project (`octoprox trust`).

pub(crate) mod approval_guard;
pub(crate) mod script_scope;
pub(crate) mod settings_choice;
pub(crate) mod settings_preview;
pub(crate) mod trust_store;
