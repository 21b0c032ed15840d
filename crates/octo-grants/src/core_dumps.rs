//! Disables core dumps, because the process memory may hold keys and tokens.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use std::io;

/// Prevents core dumps, whatever limits this process was started with, and access to its memory by other programs of
/// the same user. Call this before the first secret is read.
pub fn disable_core_dumps() -> io::Result<()> {
    // Only this setting is effective if the system pipes core dumps to a program.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Child processes are dumpable again but inherit this limit.
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
