//! Servers that are child processes and speak in lines on their standard streams.

mod lines;
mod process;
mod queue;
mod unread;

pub(crate) use process::Process;
pub(crate) use queue::Queue;
