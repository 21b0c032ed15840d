//! Servers that are child processes and speak in lines on their standard streams.

mod line_reader;
mod child_process;
mod stdin_writer;
mod invalid_lines;
mod stderr_log;
mod unread_requests;

pub(crate) use child_process::ChildProcess;
pub(crate) use stdin_writer::StdinSender;
pub(crate) use stderr_log::StderrLog;
