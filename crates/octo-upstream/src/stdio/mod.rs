//! Servers that are child processes and speak in lines on their standard streams.

mod child_process;
mod invalid_lines;
mod line_reader;
mod stderr_log;
mod stdin_writer;
mod unread_requests;

pub(crate) use child_process::ChildProcess;
pub(crate) use stderr_log::StderrLog;
pub(crate) use stdin_writer::StdinSender;
