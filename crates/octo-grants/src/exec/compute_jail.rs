//! For a process of ours that only computes: bounds, and no way to anything but its three open descriptors.

use super::confine;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use std::io;

/// Bounds of a process that only computes.
#[derive(Debug, Clone, Copy)]
pub struct ComputeJail {
    /// Bytes of address space.
    pub memory: u64,
    /// Seconds of computing.
    pub seconds: u64,
}

impl ComputeJail {
    /// Shuts the calling thread in for good. Nothing can be opened afterwards: no file, no socket, no process.
    pub fn enter(self) -> io::Result<()> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        // Older kernels go without; that no descriptor can be made holds everywhere.
        if confine::is_supported() {
            let rules = confine::Confinement::landlock(&confine::AllowedFiles::default(), false);
            rules.map_err(io::Error::other)?.apply()?;
        }
        for (resource, most) in [
            (Resource::As, self.memory),
            (Resource::Cpu, self.seconds),
            (Resource::Fsize, 0),
            (Resource::Nproc, 0),
            (Resource::Core, 0),
            (Resource::Nofile, 3),
        ] {
            setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
        Ok(())
    }
}
