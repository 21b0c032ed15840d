//! Validation of settings.

pub(crate) mod schema_problems;
pub(crate) mod settings_check;
pub(crate) mod settings_problem;
