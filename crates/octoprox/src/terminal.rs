//! Terminal input and output: standard streams, prompts, tables, widths.

pub(crate) mod async_stdio;
pub(crate) mod console;
pub(crate) mod hidden_input;
pub(crate) mod prompter;
pub(crate) mod terminal_width;
pub(crate) mod text_table;
