//! Confinement of a worker process that only computes: limits, and no access except to its three open descriptors.

use super::{compute_filter, confine};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setpriority_process, setrlimit,
};
use std::io;

/// Priority of a program of others: a tenth of the processor if everything else is busy.
const PROGRAM_NICENESS: i32 = 10;

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
        // The signal at the soft limit tells that it was the limit; the hard one ends whoever ignores it.
        let cpu = Rlimit { current: Some(self.seconds), maximum: Some(self.seconds.saturating_add(1)) };
        setrlimit(Resource::Cpu, cpu)?;
        for (resource, most) in [
            (Resource::As, self.memory),
            (Resource::Fsize, 0),
            (Resource::Nproc, 0),
            (Resource::Core, 0),
            (Resource::Nofile, 3),
        ] {
            setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
        Ok(())
    }

    /// As [`ComputeJail::enter`], for a process that runs programs of others: they get less of the processor than other
    /// work does, and it is killed for every system call that computing does not need.
    pub fn enter_strictly(self) -> io::Result<()> {
        setpriority_process(None, PROGRAM_NICENESS)?;
        self.enter()?;
        compute_filter::allow_only_computing()
    }
}
