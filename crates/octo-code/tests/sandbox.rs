//! What a program could do if it took over its process: nothing. Each system call is tried in a process of its own, from
//! a thread that existed before the sandbox.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a probe is a process of its own")]

use octo_grants::exec::compute_jail::ComputeJail;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};

const PROBE: &str = "OCTO_CODE_PROBE";
/// Exit codes of a probe: what the call returned.
const SUCCESS: i32 = 42;
const NOT_PERMITTED: i32 = 43;
const OTHER_ERROR: i32 = 44;

/// A system call and its arguments. Pointers are null: the filter decides before the kernel looks at them.
type Probe = (&'static str, libc::c_long, [libc::c_long; 6]);

fn probes() -> Vec<Probe> {
    let anonymous = libc::c_long::from(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let executable = libc::c_long::from(libc::PROT_READ | libc::PROT_EXEC);
    let mut all: Vec<Probe> = vec![
        ("mmap, executable", libc::SYS_mmap, [0, 4096, executable, anonymous, -1, 0]),
        ("mmap of a file", libc::SYS_mmap, [0, 4096, 1, libc::c_long::from(libc::MAP_PRIVATE), 0, 0]),
        ("mprotect, executable", libc::SYS_mprotect, [0, 4096, executable, 0, 0, 0]),
        ("read of another descriptor", libc::SYS_read, [3, 0, 0, 0, 0, 0]),
        ("write to another descriptor", libc::SYS_write, [3, 0, 0, 0, 0, 0]),
        (
            "signal to the parent",
            libc::SYS_tgkill,
            [libc::c_long::from(std::os::unix::process::parent_id()), 1, 0, 0, 0, 0],
        ),
        ("clone as fork", libc::SYS_clone, [libc::c_long::from(libc::SIGCHLD), 0, 0, 0, 0, 0]),
        (
            "socket",
            libc::SYS_socket,
            [libc::c_long::from(libc::AF_INET), libc::c_long::from(libc::SOCK_STREAM), 0, 0, 0, 0],
        ),
        (
            "socket, local",
            libc::SYS_socket,
            [libc::c_long::from(libc::AF_UNIX), libc::c_long::from(libc::SOCK_DGRAM), 0, 0, 0, 0],
        ),
    ];
    all.extend(plain_probes().into_iter().map(|(name, number)| (name, number, [0; 6])));
    all
}

/// System calls that are refused with any arguments.
fn plain_probes() -> Vec<(&'static str, libc::c_long)> {
    vec![
        ("openat", libc::SYS_openat),
        ("openat2", libc::SYS_openat2),
        ("execve", libc::SYS_execve),
        ("execveat", libc::SYS_execveat),
        ("clone3", libc::SYS_clone3),
        ("kill", libc::SYS_kill),
        ("ptrace", libc::SYS_ptrace),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        ("pidfd_open", libc::SYS_pidfd_open),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("memfd_create", libc::SYS_memfd_create),
        ("pipe2", libc::SYS_pipe2),
        ("dup", libc::SYS_dup),
        ("fcntl", libc::SYS_fcntl),
        ("ioctl", libc::SYS_ioctl),
        ("sendmsg", libc::SYS_sendmsg),
        ("recvmsg", libc::SYS_recvmsg),
        ("connect", libc::SYS_connect),
        ("statx", libc::SYS_statx),
        ("getcwd", libc::SYS_getcwd),
        ("getdents64", libc::SYS_getdents64),
        ("unlinkat", libc::SYS_unlinkat),
        ("uname", libc::SYS_uname),
        ("getppid", libc::SYS_getppid),
        ("getuid", libc::SYS_getuid),
        ("prctl", libc::SYS_prctl),
        ("prlimit64", libc::SYS_prlimit64),
        ("seccomp", libc::SYS_seccomp),
        ("setuid", libc::SYS_setuid),
        ("unshare", libc::SYS_unshare),
        ("mount", libc::SYS_mount),
        ("bpf", libc::SYS_bpf),
        ("keyctl", libc::SYS_keyctl),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("shmget", libc::SYS_shmget),
        ("nanosleep", libc::SYS_nanosleep),
        ("clock_nanosleep", libc::SYS_clock_nanosleep),
        ("timer_create", libc::SYS_timer_create),
        ("clock_settime", libc::SYS_clock_settime),
        ("times", libc::SYS_times),
        ("getrusage", libc::SYS_getrusage),
        ("sysinfo", libc::SYS_sysinfo),
        ("no system call", 100_000),
        #[cfg(target_arch = "x86_64")]
        ("open", libc::SYS_open),
        #[cfg(target_arch = "x86_64")]
        ("fork", libc::SYS_fork),
        #[cfg(target_arch = "x86_64")]
        ("vfork", libc::SYS_vfork),
        #[cfg(target_arch = "x86_64")]
        ("getpid of the x32 interface", 0x4000_0000 + libc::SYS_getpid),
    ]
}

/// These fail, and the process goes on.
const CLOCKS: [(&str, libc::c_long); 3] = [
    ("clock_gettime", libc::SYS_clock_gettime),
    ("clock_getres", libc::SYS_clock_getres),
    ("gettimeofday", libc::SYS_gettimeofday),
];

fn run_probe(name: &str) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // One thread: without a test harness that waits beside it.
    command
        .args(["--exact", "probe_process", "--ignored", "--nocapture", "--test-threads=1"])
        .env(PROBE, name);
    command.output().unwrap().status
}

#[test]
fn every_other_system_call_kills_the_process() {
    for (name, _, _) in probes() {
        assert_eq!(run_probe(name).signal(), Some(libc::SIGSYS), "{name}");
    }
}

#[test]
fn clocks_fail_and_memory_works() {
    for (name, _) in CLOCKS {
        assert_eq!(run_probe(name).code(), Some(NOT_PERMITTED), "{name}");
    }
    assert_eq!(run_probe("mmap").code(), Some(SUCCESS));
}

/// How far a probe is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Starting,
    /// The thread waits for the sandbox.
    Waiting,
    Sandboxed,
}

type SharedStage = (Mutex<Stage>, Condvar);

fn set_stage((stage, changed): &SharedStage, to: Stage) {
    *stage.lock().unwrap() = to;
    changed.notify_all();
}

fn wait_for((stage, changed): &SharedStage, wanted: Stage) {
    drop(changed.wait_while(stage.lock().unwrap(), |stage| *stage != wanted).unwrap());
}

/// The process of a probe.
#[test]
#[ignore = "started by the other tests"]
#[expect(unsafe_code, reason = "system calls without a library between")]
fn probe_process() {
    let Ok(name) = std::env::var(PROBE) else { return };
    let clocks = CLOCKS.map(|(name, number)| (name, number, [0; 6]));
    let anonymous = libc::c_long::from(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let memory = ("mmap", libc::SYS_mmap, [0, 4096, 3, anonymous, -1, 0]);
    let all = probes().into_iter().chain(clocks).chain([memory]);
    let (_, number, [a, b, c, d, e, f]) = all.into_iter().find(|(known, _, _)| *known == name).unwrap();
    // Waiting is a futex, which is allowed. A thread that is still starting, or that spins in a channel, makes other calls.
    let stage = Arc::new((Mutex::new(Stage::Starting), Condvar::new()));
    let of_thread = Arc::clone(&stage);
    let thread = std::thread::spawn(move || {
        set_stage(&of_thread, Stage::Waiting);
        wait_for(&of_thread, Stage::Sandboxed);
        // SAFETY: the kernel checks every argument, and the process ends.
        unsafe {
            let code = match libc::syscall(number, a, b, c, d, e, f) {
                -1 if *libc::__errno_location() == libc::EPERM => NOT_PERMITTED,
                -1 => OTHER_ERROR,
                _ => SUCCESS,
            };
            libc::_exit(code);
        }
    });
    wait_for(&stage, Stage::Waiting);
    ComputeJail { memory: 1 << 32, seconds: 10 }.enter_strictly().unwrap();
    set_stage(&stage, Stage::Sandboxed);
    thread.join().unwrap();
}
