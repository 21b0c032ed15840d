//! `octoprox tools` and `octoprox explain`.

pub mod explain_command;
pub mod tools_command;
