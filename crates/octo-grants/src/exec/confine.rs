//! Landlock and seccomp: what a program may open, and which system calls it may make.

use super::plan::Confine;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::io;

/// Without the third version a program could cut any file to nothing.
const NEEDED: ABI = ABI::V3;
const WANTED: ABI = ABI::V6;

/// What no program in a workspace needs, and what would lead around the sandbox or deep into the kernel.
const REFUSED: &[i64] = &[
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
    // Its operations are not seen by the filter: a socket can be made with it.
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
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

/// On x86-64 every call has a second number, for programs with short pointers.
const SECOND_NUMBERS: Option<i64> = if cfg!(target_arch = "x86_64") { Some(0x4000_0000) } else { None };

/// What a program may still do, made before the fork and put on between fork and exec.
pub(super) struct Confinement {
    rules: Option<RulesetCreated>,
    filter: BpfProgram,
}

impl Confinement {
    /// Of a program that nothing else encloses.
    pub fn landlock(
        read: &[impl AsRef<std::path::Path>],
        write: &[impl AsRef<std::path::Path>],
        network: bool,
    ) -> Result<Self, String> {
        let rules = rules(read, write, network).map_err(|error| error.to_string())?;
        // Landlock does not stop anybody from talking to a socket in the file system (a container engine's, say) nor
        // from sending datagrams, so without a network there is no socket at all.
        let families: &[i32] = if network { &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] } else { &[] };
        Ok(Self { rules: Some(rules), filter: filter(families)? })
    }

    pub fn put_on(&mut self) -> io::Result<()> {
        if let Some(rules) = self.rules.take() {
            // What it may know of itself; only now is it known which process that is.
            let own = path_beneath_rules(["/proc/self"], AccessFs::ReadFile | AccessFs::ReadDir);
            rules.add_rules(own).and_then(RulesetCreated::restrict_self).map_err(io::Error::other)?;
        }
        seccompiler::apply_filter(&self.filter).map_err(io::Error::other)?;
        keep_few_capabilities()
    }
}

/// The filter of a program in namespaces of its own, as bubblewrap reads it.
pub(super) fn filter_of_namespaces() -> Result<Vec<u8>, String> {
    // Its network, loopback included, is its own; other families know no namespaces.
    let program = filter(&[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK])?;
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for step in program {
        bytes.extend(step.code.to_ne_bytes());
        bytes.extend([step.jt, step.jf]);
        bytes.extend(step.k.to_ne_bytes());
    }
    Ok(bytes)
}

/// Whether this kernel can do it.
pub(super) fn supported() -> bool {
    let none: &[&str] = &[];
    rules(none, none, false).is_ok() && filter(&[]).is_ok()
}

impl Confine {
    pub(super) fn confinement(&self) -> Result<Option<Confinement>, String> {
        match self {
            Self::Landlock { read, write, network } => Confinement::landlock(read, write, *network).map(Some),
            Self::Nothing | Self::Bubblewrap { .. } => Ok(None),
        }
    }
}

fn rules(
    read: &[impl AsRef<std::path::Path>],
    write: &[impl AsRef<std::path::Path>],
    network: bool,
) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?;
    if !network {
        rules = rules.handle_access(AccessNet::from_all(WANTED))?;
    }
    // A device made in a root would be a way to every disk.
    let writing = AccessFs::from_all(WANTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let devices = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir | AccessFs::IoctlDev;
    rules
        .create()?
        .add_rules(path_beneath_rules(DEVICES, devices))?
        .add_rules(path_beneath_rules(MACHINE, AccessFs::ReadFile | AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(read, AccessFs::from_read(WANTED)))?
        .add_rules(path_beneath_rules(write, writing))
}

/// No terminals but the program's own: others belong to somebody.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// What programs want to know about the machine. Landlock does not keep a program from the environment or the arguments
/// of other processes, so their folders stay closed.
const MACHINE: [&str; 10] = [
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

/// Root keeps what it needs to work on the files of others, and nothing that leads out: without the rest it may not look
/// into processes that have more, such as the hub.
fn keep_few_capabilities() -> io::Result<()> {
    let few =
        CapabilitySet::CHOWN | CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER | CapabilitySet::FSETID;
    let kept = capabilities(None)?.permitted & few;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
}

fn filter(families: &[i32]) -> Result<BpfProgram, String> {
    compile(families).map_err(|error| error.to_string())
}

fn compile(families: &[i32]) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut other = Vec::new();
    for family in families {
        let family = u64::try_from(*family).unwrap_or_default();
        other.push(SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)?);
    }
    let sockets = if other.is_empty() { Vec::new() } else { vec![SeccompRule::new(other)?] };
    let mut rules = BTreeMap::from([(libc::SYS_socket, sockets)]);
    rules.extend(REFUSED.iter().map(|call| (*call, Vec::new())));
    if let Some(second) = SECOND_NUMBERS {
        let twins: Vec<_> = rules.iter().map(|(call, rule)| (call | second, rule.clone())).collect();
        rules.extend(twins);
    }
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()
}
