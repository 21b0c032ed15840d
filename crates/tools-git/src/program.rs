//! The git program: arguments, execution and output.

pub(crate) mod git_command;
pub(crate) mod git_error;
pub(crate) mod git_output;
pub(crate) mod run_git;
pub(crate) mod safe_arg;
