//! The memory of this process is for nobody else: it may hold keys and tokens.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use std::io;

/// From now on a crash leaves no core, whatever limits this process was started with, and other programs of the same user
/// cannot look into it. To be called before the first secret is read.
pub fn disable_core_dumps() -> io::Result<()> {
    // A system that hands cores to a program asks only this.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Programs that are started from here begin as ordinary ones again, and keep this.
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{dumpable_behavior, getrlimit};

    #[test]
    fn nothing_of_this_process_is_written_when_it_crashes() {
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::Dumpable);
        disable_core_dumps().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        assert_eq!(getrlimit(Resource::Core), Rlimit { current: Some(0), maximum: Some(0) });
        disable_core_dumps().unwrap();
    }
}
