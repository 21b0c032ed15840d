//! Seccomp filter of a process that only computes: it may read its standard input, write its standard output and use
//! memory. Any other system call kills it.

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::io;

/// Memory, threads that wait, signals of the process itself, and randomness for hash tables.
const ALLOWED_SYSCALLS: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
];

/// Answered with an error, because libraries call them and do without: clocks, and the number of processors.
const FAILING_SYSCALLS: &[i64] = &[
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_sched_getaffinity,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_time,
];

/// Applies the filter to all threads of the process, permanently.
pub(super) fn allow_only_computing() -> io::Result<()> {
    let filters = filters().map_err(io::Error::other)?;
    for filter in &filters {
        seccompiler::apply_filter_all_threads(filter).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Each errno needs its own filter; of the results of two filters the kernel takes the stricter one, and killing is
/// stricter than an error. So the second must be applied while it is still allowed, and allow what the first answers.
fn filters() -> Result<[BpfProgram; 2], BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let failing: BTreeMap<_, _> = FAILING_SYSCALLS.iter().map(|call| (*call, Vec::new())).collect();
    let error = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let errors = SeccompFilter::new(failing.clone(), SeccompAction::Allow, error, arch)?.try_into()?;
    let mut allowed = failing;
    allowed.extend(ALLOWED_SYSCALLS.iter().map(|call| (*call, Vec::new())));
    allowed.extend(restricted_syscalls()?);
    let kill = SeccompFilter::new(allowed, SeccompAction::KillProcess, SeccompAction::Allow, arch)?;
    Ok([errors, kill.try_into()?])
}

/// System calls that are allowed with some arguments only.
fn restricted_syscalls() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let equals = |place, value| rule(&[(place, SeccompCmpOp::Eq, value)]);
    let own = u64::from(std::process::id());
    let executable = SeccompCmpOp::MaskedEq(libc::PROT_EXEC.unsigned_abs().into());
    let anonymous = u64::from(libc::MAP_ANONYMOUS.unsigned_abs());
    let not_executable = (2, executable, 0);
    Ok(BTreeMap::from([
        (libc::SYS_read, vec![equals(0, 0)?]),
        // Standard error goes nowhere, and Rust reports an overflow of the stack there.
        (libc::SYS_write, vec![equals(0, 1)?, equals(0, 2)?]),
        (libc::SYS_tgkill, vec![equals(0, own)?]),
        (libc::SYS_mprotect, vec![rule(std::slice::from_ref(&not_executable))?]),
        (libc::SYS_mmap, vec![rule(&[not_executable, (3, SeccompCmpOp::MaskedEq(anonymous), anonymous)])?]),
    ]))
}

/// Compares the low 32 bits of arguments; all that are compared here have no more.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let conditions = conditions.iter().cloned();
    let all = conditions
        .map(|(place, how, value)| SeccompCondition::new(place, SeccompCmpArgLen::Dword, how, value));
    SeccompRule::new(all.collect::<Result<_, _>>()?)
}
