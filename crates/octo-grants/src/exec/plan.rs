//! What the hub and its launcher tell each other over the control socket.
//!
//! The hub sends a length, the program's three descriptors and a [`Plan`]; afterwards one byte asks for an end, and the
//! end of the socket means that everything must go. The launcher answers with one [`Report`] per line.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;

/// Asks every process of the program to end.
pub(super) const TERMINATE: u8 = b'T';

/// How long what a program leaves behind may still write after its end.
pub(super) const DRAIN: std::time::Duration = std::time::Duration::from_millis(200);

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The program, its arguments and its variables. They travel here because arguments of the launcher itself could be read by
    /// everybody on the machine.
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub cwd: OsString,
    pub bounds: Bounds,
    pub confine: Confine,
    /// Whether the descriptors are a terminal, which becomes the program's own.
    pub tty: bool,
    /// A folder that goes when everything has ended.
    pub scratch: Option<OsString>,
}

/// 0 is no bound.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Bounds {
    pub memory: u64,
    pub processes: u64,
    pub file: u64,
    pub open_files: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Confine {
    Nothing,
    Landlock { read: Vec<OsString>, write: Vec<OsString>, network: bool },
    Bubblewrap { program: OsString, args: Vec<OsString> },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    Started {
        pid: i32,
    },
    /// Nothing ran.
    Failed {
        errno: Option<i32>,
        why: String,
    },
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
        too_many: bool,
    },
}
