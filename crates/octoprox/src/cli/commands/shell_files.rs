//! Commands that print files for a shell: completions and man pages.

pub(crate) mod completions_command;
pub(crate) mod man_command;
