//! Servers that are child processes and speak in lines on their standard streams.

mod lines;
mod process;
mod queue;
mod rubbish;
mod said;
mod unread;

pub(crate) use process::Process;
pub(crate) use queue::Queue;
pub(crate) use said::Said;
