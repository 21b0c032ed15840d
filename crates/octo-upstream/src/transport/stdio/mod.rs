//! Servers as child processes that exchange lines over stdin and stdout.

pub(crate) mod child_process;
mod invalid_lines;
mod line_reader;
pub(crate) mod stderr_log;
pub(crate) mod stdin_line;
pub(crate) mod stdin_writer;
mod unread_requests;
