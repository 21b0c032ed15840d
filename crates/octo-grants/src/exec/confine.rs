//! Landlock and seccomp: which files a program may open and which system calls it may make.

use super::launcher_protocol::{ConfinementPlan, DescriptorSlot};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use rustix::fs::FileType;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Before version 3, a program could truncate any file.
const REQUIRED_ABI: ABI = ABI::V3;
const PREFERRED_ABI: ABI = ABI::V6;

/// System calls that no program in a workspace needs, or that bypass the sandbox or expose the kernel.
const REFUSED_SYSCALLS: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    // The filter does not see its operations, which can create sockets.
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Their arguments are in memory, where a filter cannot look. Programs fall back to `clone` and `openat`, which it can
/// filter.
const UNFILTERABLE_SYSCALLS: &[i64] = &[libc::SYS_clone3, libc::SYS_openat2];

/// System calls that affect other processes in shared PID and IPC namespaces. Bubblewrap creates its own of both.
const SHARED_NAMESPACE_SYSCALLS: &[i64] = &[
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
];

/// System calls whose first argument is a process; 0 is the caller.
const SINGLE_PROCESS_SYSCALLS: [i64; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// `setpriority` and `ioprio_set`, with the target type that means every process of the user.
const MULTI_PROCESS_SYSCALLS: [(i64, u64); 2] = [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

/// Same number on all architectures; not in every list yet.
const SYS_FCHMODAT2: i64 = 452;

/// On x86-64 every system call has a second number, for the x32 ABI.
const X32_SYSCALL_BIT: Option<i64> = if cfg!(target_arch = "x86_64") { Some(0x4000_0000) } else { None };

/// Restrictions of a program, prepared before the fork and applied between fork and exec.
pub(super) struct Confinement {
    rules: Option<RulesetCreated>,
    filters: [BpfProgram; 2],
}

/// Files that a program may open: parts of the system by path, everything else by descriptor.
#[derive(Default)]
pub(super) struct AllowedFiles<'a> {
    pub system: &'a [std::ffi::OsString],
    pub read: Vec<BorrowedFd<'a>>,
    pub write: Vec<BorrowedFd<'a>>,
}

impl Confinement {
    /// For a program without any other confinement.
    pub fn landlock(files: &AllowedFiles<'_>, network: bool) -> Result<Self, String> {
        let rules = landlock_rules(files, network).map_err(|error| error.to_string())?;
        // Landlock restricts neither connections to Unix sockets in the file system (such as a container engine's)
        // nor datagrams, so without network access no sockets are allowed at all.
        let families: &[i32] = if network { &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] } else { &[] };
        Ok(Self { rules: Some(rules), filters: filters(families, Namespaces::Shared)? })
    }

    pub fn apply(&mut self) -> io::Result<()> {
        if let Some(rules) = self.rules.take() {
            // Its own `/proc` entry; the process is known only now.
            let own = path_beneath_rules(["/proc/self"], AccessFs::ReadFile | AccessFs::ReadDir);
            rules.add_rules(own).and_then(RulesetCreated::restrict_self).map_err(io::Error::other)?;
        }
        for filter in &self.filters {
            seccompiler::apply_filter(filter).map_err(io::Error::other)?;
        }
        drop_capabilities()
    }
}

/// Unix sockets of a program in its own namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnixSockets {
    /// It reaches those that it can see: it has its own abstract sockets, or [`AbstractScope`] hides the others.
    Allowed,
    /// It shares the abstract sockets of the machine, such as those of a desktop session, and nothing else hides them.
    Refused,
}

/// Filters for a program in its own namespaces, in the format that bubblewrap reads.
pub(super) fn namespace_filters(unix: UnixSockets) -> Result<[Vec<u8>; 2], String> {
    // Families other than these ignore namespaces.
    let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_UNIX];
    let families = if unix == UnixSockets::Allowed { &families[..] } else { &families[..3] };
    Ok(filters(families, Namespaces::Own)?.map(|program| {
        let mut bytes = Vec::with_capacity(program.len() * 8);
        for step in program {
            bytes.extend(step.code.to_ne_bytes());
            bytes.extend([step.jt, step.jf]);
            bytes.extend(step.k.to_ne_bytes());
        }
        bytes
    }))
}

/// Hides all abstract Unix sockets except those of the program and its children: since Linux 6.12. It restricts nothing
/// else, so bubblewrap can still mount.
pub(super) struct AbstractScope(RulesetCreated);

impl AbstractScope {
    pub fn new() -> Option<Self> {
        let scoped = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .scope(Scope::AbstractUnixSocket)
            .and_then(Ruleset::create);
        scoped.ok().map(Self)
    }

    /// Applies it to this process and what it starts. A set-user-ID program gains no rights afterwards.
    pub fn apply(self) -> io::Result<()> {
        self.0.restrict_self().map(drop).map_err(io::Error::other)
    }
}

/// Whether the kernel supports it.
pub(super) fn is_supported() -> bool {
    landlock_rules(&AllowedFiles::default(), false).is_ok() && filters(&[], Namespaces::Shared).is_ok()
}

/// Whether Landlock prevents signals to processes outside the sandbox: since Linux 6.12.
pub fn scopes_signals() -> bool {
    let scoped = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)
        .and_then(Ruleset::create);
    scoped.is_ok()
}

impl ConfinementPlan {
    pub(super) fn confinement(&self, descriptors: &[OwnedFd]) -> Result<Option<Confinement>, String> {
        let Self::Landlock { system, read, write, network } = self else { return Ok(None) };
        let held = |slots: &[DescriptorSlot]| -> Result<Vec<BorrowedFd<'_>>, String> {
            let find = |slot: &DescriptorSlot| {
                descriptors.get(slot.0).map(AsFd::as_fd).ok_or("a descriptor is missing")
            };
            Ok(slots.iter().map(find).collect::<Result<_, _>>()?)
        };
        let files = AllowedFiles { system, read: held(read)?, write: held(write)? };
        Confinement::landlock(&files, *network).map(Some)
    }
}

fn landlock_rules(files: &AllowedFiles<'_>, network: bool) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED_ABI))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(PREFERRED_ABI))?
        .scope(Scope::from_all(PREFERRED_ABI))?;
    if !network {
        rules = rules.handle_access(AccessNet::from_all(PREFERRED_ABI))?;
    }
    // A device node in a root would give access to every disk.
    let writing = AccessFs::from_all(PREFERRED_ABI) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let devices = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir | AccessFs::IoctlDev;
    rules
        .create()?
        .add_rules(path_beneath_rules(ALLOWED_DEVICES, devices))?
        .add_rules(path_beneath_rules(READABLE_KERNEL_FILES, AccessFs::ReadFile | AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(files.system, AccessFs::from_read(PREFERRED_ABI)))?
        .add_rules(descriptor_rules(&files.read, AccessFs::from_read(PREFERRED_ABI)))?
        .add_rules(descriptor_rules(&files.write, writing))
}

/// A rule is bound to the open file, even if its path now refers to another.
fn descriptor_rules<'a>(
    held: &'a [BorrowedFd<'a>],
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<BorrowedFd<'a>>, RulesetError>> {
    held.iter().map(move |held| {
        let is_folder = rustix::fs::fstat(held)
            .is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Directory);
        let access = if is_folder { access } else { access & AccessFs::from_file(PREFERRED_ABI) };
        Ok(PathBeneath::new(*held, access))
    })
}

/// No terminals except the program's own.
const ALLOWED_DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Information about the machine that programs need. Landlock does not hide the environment or arguments of other
/// processes, so their directories stay closed.
const READABLE_KERNEL_FILES: [&str; 10] = [
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel",
    "/proc/sys/vm/overcommit_memory",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
];

/// The hub may have capabilities, for example to listen on a low port; its programs have none.
fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(set_capabilities(None, sets)?)
}

/// Namespace of the processes and IPC objects that a program can address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Namespaces {
    Own,
    Shared,
}

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// What is denied, and what is reported as not implemented: each errno needs its own filter.
fn filters(families: &[i32], namespaces: Namespaces) -> Result<[BpfProgram; 2], String> {
    let unknown = UNFILTERABLE_SYSCALLS.iter().map(|call| (*call, Vec::new())).collect();
    let compiled = refused_syscalls(families, namespaces)
        .and_then(|refused| Ok([compile(refused, libc::EPERM)?, compile(unknown, libc::ENOSYS)?]));
    compiled.map_err(|error| error.to_string())
}

fn compile(mut rules: SyscallRules, errno: i32) -> Result<BpfProgram, BackendError> {
    if let Some(second) = X32_SYSCALL_BIT {
        let twins: Vec<_> = rules.iter().map(|(call, rule)| (call | second, rule.clone())).collect();
        rules.extend(twins);
    }
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()
}

/// Condition on the low 32 bits of an argument.
fn argument(place: u8, how: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(place, SeccompCmpArgLen::Dword, how, value)
}

/// Condition that all of these bits are set.
fn has_bits(place: u8, bits: u32) -> Result<SeccompCondition, BackendError> {
    argument(place, SeccompCmpOp::MaskedEq(bits.into()), bits.into())
}

fn refused_syscalls(families: &[i32], namespaces: Namespaces) -> Result<SyscallRules, BackendError> {
    let mut other = Vec::new();
    for family in families {
        other.push(argument(0, SeccompCmpOp::Ne, u64::try_from(*family).unwrap_or_default())?);
    }
    let sockets = if other.is_empty() { Vec::new() } else { vec![SeccompRule::new(other)?] };
    let mut rules = BTreeMap::from([(libc::SYS_socket, sockets)]);
    rules.extend(REFUSED_SYSCALLS.iter().map(|call| (*call, Vec::new())));
    // In its own user namespace a program would have every capability.
    let new_user = has_bits(0, libc::CLONE_NEWUSER.unsigned_abs())?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![new_user])?]);
    refuse_set_id(&mut rules)?;
    if namespaces == Namespaces::Shared {
        rules.extend(SHARED_NAMESPACE_SYSCALLS.iter().map(|call| (*call, Vec::new())));
        for call in SINGLE_PROCESS_SYSCALLS {
            rules.insert(call, vec![SeccompRule::new(vec![argument(0, SeccompCmpOp::Ne, 0)?])?]);
        }
        for (call, user) in MULTI_PROCESS_SYSCALLS {
            let named = SeccompRule::new(vec![argument(1, SeccompCmpOp::Ne, 0)?])?;
            let all = SeccompRule::new(vec![argument(0, SeccompCmpOp::Eq, user)?])?;
            rules.insert(call, vec![named, all]);
        }
    }
    Ok(rules)
}

/// A set-user-ID program in a root would give its owner's rights to every user of the machine. The set-group-ID bit
/// is refused for new files only: a directory may have it, and `chmod` does not show what it changes.
fn refuse_set_id(rules: &mut SyscallRules) -> Result<(), BackendError> {
    // Each with the index of its mode argument, and of its flags if the mode matters only when a file is created.
    let changes: &[(i64, u8)] = &[
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, 1),
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (SYS_FCHMODAT2, 2),
    ];
    let makes: &[(i64, u8, Option<u8>)] = &[
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, 2, Some(1)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, 1, None),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, 1, None),
        (libc::SYS_openat, 3, Some(2)),
        (libc::SYS_mknodat, 2, None),
    ];
    for (call, mode) in changes {
        rules.insert(*call, vec![SeccompRule::new(vec![has_bits(*mode, libc::S_ISUID)?])?]);
    }
    for (call, mode, flags) in makes {
        let mut all = Vec::new();
        for bit in [libc::S_ISUID, libc::S_ISGID] {
            match flags {
                None => all.push(SeccompRule::new(vec![has_bits(*mode, bit)?])?),
                Some(flags) => {
                    for made in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
                        all.push(SeccompRule::new(vec![
                            has_bits(*flags, made.unsigned_abs())?,
                            has_bits(*mode, bit)?,
                        ])?);
                    }
                }
            }
        }
        rules.insert(*call, all);
    }
    Ok(())
}
