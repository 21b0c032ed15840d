//! Edits of settings files that keep comments and order.

pub(crate) mod replace_file;
pub(crate) mod settings_edit;
