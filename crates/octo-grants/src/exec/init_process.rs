//! The first process of a container. It starts this program again as its child, forwards signals to it, and reaps the
//! orphans that the kernel hands to the first process of a PID namespace.

use super::descendants::reap;
use rustix::process::{Pid, Signal, WaitStatus, getpid, kill_process};
use rustix::termios::{isatty, tcsetpgrp};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

const FORWARDED: [Signal; 6] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2];

/// Returns whether this process is the first of its PID namespace.
pub fn is_init_process() -> bool {
    getpid() == Pid::INIT
}

/// Runs `program` with the arguments of this process and returns its exit code, or 128 plus the signal that ended it.
pub fn main(program: &Path) -> io::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(supervise(program)).map(ExitCode::from)
}

async fn supervise(program: &Path) -> io::Result<u8> {
    let mut exits = signal(SignalKind::child())?;
    let (sender, mut received) = mpsc::unbounded_channel();
    for forwarded in FORWARDED {
        let mut signals = signal(SignalKind::from_raw(forwarded.as_raw()))?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let _ = sender.send(forwarded);
            }
        });
    }
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    // In a group of its own: otherwise Ctrl-C in a terminal reaches it twice, and the second ends open requests.
    let child = Command::new(program).arg0(name).args(words).process_group(0).spawn()?;
    let child = Pid::from_child(&child);
    if isatty(io::stdin()) {
        // Fails if the terminal controls another session; Ctrl-C does not come from it then.
        let _ = tcsetpgrp(io::stdin(), child);
    }
    loop {
        let mut status = None;
        reap(|pid, ended| {
            if pid == child.as_raw_nonzero().get() {
                status = Some(ended);
            }
        });
        if let Some(status) = status {
            return Ok(exit_code(status));
        }
        tokio::select! {
            _ = exits.recv() => {}
            Some(signal) = received.recv() => {
                let _ = kill_process(child, signal);
            }
        }
    }
}

fn exit_code(status: WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
