//! Code mode: programs of models that call tools of the hub.

mod code_tools;
mod program_slots;
pub(crate) mod run_code;
mod tool_value;
