//! What the hub and its launcher tell each other over the control socket.
//!
//! The hub sends two lengths, descriptors and a [`LaunchPlan`]; afterwards one byte asks for an end, and the end of the socket means
//! that everything must go. The launcher answers with one [`LauncherReport`] per line.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Asks every process of the program to end.
pub(super) const TERMINATE: u8 = b'T';

/// How long what a program leaves behind may still write after its end.
pub(super) const DRAIN_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(200);

/// Descriptors in one message; the kernel takes at most 253.
pub(super) const MAX_DESCRIPTORS: usize = 250;

/// A descriptor that travels with the plan, by its place among them.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct DescriptorSlot(pub usize);

/// What travels with a plan: the program's input, output and error output, and then whatever the plan names by its slot.
pub(crate) struct Descriptors(pub(super) Vec<OwnedFd>);

impl Descriptors {
    pub fn new(streams: [OwnedFd; 3]) -> Self {
        Self(streams.into())
    }

    pub fn add(&mut self, descriptor: impl AsFd) -> io::Result<DescriptorSlot> {
        self.0.push(descriptor.as_fd().try_clone_to_owned()?);
        Ok(DescriptorSlot(self.0.len() - 1))
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchPlan {
    /// The program, its arguments and its variables. They travel here because arguments of the launcher itself could be read by
    /// everybody on the machine.
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub cwd: Cwd,
    pub bounds: ResourceLimits,
    pub confine: ConfinementPlan,
    /// Whether a launcher that is root lets the program be nobody; see [`super::nobody`].
    pub nobody: bool,
    /// Whether the descriptors are a terminal, which becomes the program's own.
    pub tty: bool,
    /// A folder that goes when everything has ended.
    pub scratch: Option<OsString>,
}

/// The folder that a program starts in.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Cwd {
    /// That the operator has named, or that the program's own view decides about.
    Path(OsString),
    Folder(DescriptorSlot),
}

/// 0 is no bound.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct ResourceLimits {
    pub memory: u64,
    pub processes: u64,
    pub file: u64,
    pub open_files: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ConfinementPlan {
    Nothing,
    /// Parts of the system go by their paths, which no program can change; everything else by descriptors.
    Landlock {
        system: Vec<OsString>,
        read: Vec<DescriptorSlot>,
        write: Vec<DescriptorSlot>,
        network: bool,
    },
    Bubblewrap {
        program: DescriptorSlot,
        args: Vec<BwrapArg>,
    },
}

/// An argument of bubblewrap.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum BwrapArg {
    Text(OsString),
    /// The number that the descriptor has in the launcher.
    Descriptor(DescriptorSlot),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum LauncherReport {
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
