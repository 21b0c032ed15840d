//! The git program: its arguments, how it is run, and what it prints.

pub(crate) mod git_command;
pub(crate) mod git_error;
pub(crate) mod git_output;
pub(crate) mod run_git;
pub(crate) mod safe_arg;
