//! Confinement of a worker process that only computes: limits, and no access except to its three open descriptors.

use super::confine;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use std::io;

/// Limits of a process that only computes.
#[derive(Debug, Clone, Copy)]
pub struct ComputeJail {
    /// Bytes of address space.
    pub memory: u64,
    /// Seconds of CPU time.
    pub seconds: u64,
}

impl ComputeJail {
    /// Confines the calling thread permanently. Afterwards it cannot open files, sockets or processes.
    pub fn enter(self) -> io::Result<()> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        // Not available on older kernels; the ban on new descriptors works everywhere.
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
