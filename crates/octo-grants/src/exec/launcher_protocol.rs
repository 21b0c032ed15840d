//! Messages between the hub and its launcher over the control socket.
//!
//! The hub sends two lengths, descriptors and a [`LaunchPlan`]; afterwards one byte requests termination, and EOF
//! means that everything must be killed. The launcher replies with one [`LauncherReport`] per line.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Requests termination of every process of the program.
pub(super) const TERMINATE: u8 = b'T';

/// How long descendants of an exited program may still write output.
pub(super) const DRAIN_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(200);

/// Descriptors per message; the kernel limit is 253.
pub(super) const MAX_DESCRIPTORS: usize = 250;

/// A descriptor that is sent with the plan, by index.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct DescriptorSlot(pub usize);

/// Descriptors sent with a plan: the program's stdin, stdout and stderr, then those that the plan refers to by slot.
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
    /// The program, its arguments and its environment. They are sent here because every user of the machine could
    /// read arguments of the launcher itself.
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub cwd: Cwd,
    pub bounds: ResourceLimits,
    pub confine: ConfinementPlan,
    /// Whether a launcher that runs as root starts the program unprivileged; see [`super::unprivileged`].
    pub nobody: bool,
    /// Whether the descriptors are a terminal, which becomes the program's controlling terminal.
    pub tty: bool,
    /// A directory that is removed when everything has exited.
    pub scratch: Option<OsString>,
    /// Opens the port of the proxy inside the sandbox before the program starts.
    pub proxy_port: Option<ProxyPortPlan>,
}

/// See [`super::proxy_port`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProxyPortPlan {
    /// The program that opens the port, with its arguments.
    pub opener: Vec<OsString>,
    /// Socket over which it passes the port to the hub.
    pub socket: DescriptorSlot,
}

/// Working directory of a program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Cwd {
    /// Configured by the operator, or resolved in the program's own mount namespace.
    Path(OsString),
    Folder(DescriptorSlot),
}

/// 0 for no limit.
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
    /// Parts of the system by path, which no program can change; everything else by descriptor.
    Landlock {
        system: Vec<OsString>,
        read: Vec<DescriptorSlot>,
        write: Vec<DescriptorSlot>,
        network: bool,
    },
    Bubblewrap {
        program: DescriptorSlot,
        args: Vec<BwrapArg>,
        /// Whether the program shares the network of the machine, and with it the abstract Unix sockets.
        shares_network: bool,
    },
}

/// A bubblewrap argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum BwrapArg {
    Text(OsString),
    /// Number of the descriptor in the launcher.
    Descriptor(DescriptorSlot),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum LauncherReport {
    Started {
        pid: i32,
    },
    /// The program did not start.
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
