//! System calls that affect more than the program, and the kernel's own files.

use crate::bench::{ExecFixture, confining_sandboxes};
use octo_grants::exec::{Exit, SandboxChoice};

/// Python with `call(number, ...)`, which returns the result or the negated errno.
const CALLS: &str = r"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    done = libc.syscall(*words)
    return done if done >= 0 else -ctypes.get_errno()
";

async fn python(bench: &ExecFixture, script: &str) -> String {
    std::fs::write(bench.path("work/attempt.py"), format!("{CALLS}{script}")).unwrap();
    let done = bench.exec.run(bench.job("/usr/bin/python3 attempt.py 2>&1")).await.unwrap();
    let said = String::from_utf8_lossy(&done.stdout.head).trim_end().to_owned();
    assert_eq!(done.exit, Exit::Code(0), "{said}");
    said
}

/// 1 is EPERM, 38 is ENOSYS.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn a_new_user_namespace_is_refused_whatever_makes_it() {
    for choice in confining_sandboxes() {
        let bench = ExecFixture::new(choice);
        let script = r"
print(call(56, 0x10000000 | 17, 0, 0, 0, 0), call(0x40000038, 0x10000000 | 17, 0, 0, 0, 0))
print(call(435, ctypes.create_string_buffer(88), 88), call(437, -100, b'/', ctypes.create_string_buffer(24), 24))
print(call(272, 0x10000000))
";
        assert_eq!(python(&bench, script).await, "-1 -1\n-38 -38\n-1", "{choice:?}");
        let threads = "import threading, subprocess\nt = threading.Thread(target=lambda: print('thread', flush=True))\nt.start(); t.join()\nsubprocess.run(['echo', 'child'])";
        assert_eq!(python(&bench, threads).await, "thread\nchild", "{choice:?}");
    }
}

#[tokio::test]
async fn set_user_id_files_cannot_be_made() {
    for choice in confining_sandboxes() {
        let bench = ExecFixture::new(choice);
        let script = r"
open('plain', 'w').close()
def attempt(work):
    try:
        work()
        return 'made'
    except PermissionError:
        return 'refused'
held = os.open('plain', os.O_RDONLY)
print(*[attempt(work) for work in [
    lambda: os.chmod('plain', 0o4755),
    lambda: os.chmod('plain', 0o6755),
    lambda: os.fchmod(held, 0o4755),
    lambda: os.chmod('plain', 0o4755, dir_fd=os.open('.', os.O_RDONLY)),
    lambda: os.open('new', os.O_CREAT | os.O_WRONLY, 0o4755),
    lambda: os.open('new', os.O_CREAT | os.O_WRONLY, 0o2755),
    lambda: os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755),
    lambda: os.mknod('node', 0o104755),
]])
print(*[attempt(work) for work in [
    lambda: os.chmod('plain', 0o755),
    lambda: os.open('other', os.O_CREAT | os.O_WRONLY, 0o755),
    lambda: os.mkdir('folder'),
    lambda: os.chmod('folder', 0o2755),
]])
";
        let said = python(&bench, script).await;
        let wanted = format!("{}\n{}", ["refused"; 8].join(" "), ["made"; 4].join(" "));
        assert_eq!(said, wanted, "{choice:?}");
        let set = std::fs::read_dir(bench.path("work")).unwrap().flatten().find(|entry| {
            use std::os::unix::fs::MetadataExt;
            entry.metadata().unwrap().mode() & 0o4000 != 0
        });
        assert!(set.is_none(), "{choice:?}: {set:?}");
    }
}

/// A program that shares the machine's processes can change none but itself.
#[tokio::test]
async fn other_processes_are_not_changed() {
    let bench = ExecFixture::new(SandboxChoice::Landlock);
    let mut victim = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let script = r"
import resource
def attempt(work):
    try:
        work()
        return 'done'
    except OSError:
        return 'refused'
other = VICTIM
print(*[attempt(work) for work in [
    lambda: resource.prlimit(other, resource.RLIMIT_FSIZE, (0, 0)),
    lambda: os.setpriority(os.PRIO_PROCESS, other, 19),
    lambda: os.setpriority(os.PRIO_USER, 0, 19),
    lambda: os.sched_setaffinity(other, {0}),
    lambda: os.sched_setscheduler(other, os.SCHED_BATCH, os.sched_param(0)),
    lambda: os.kill(other, 9),
]])
print(*[attempt(work) for work in [
    lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    lambda: os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0)),
    lambda: os.sched_setaffinity(0, {0}),
]])
";
    let said = python(&bench, &script.replace("VICTIM", &victim.id().to_string())).await;
    let still = victim.try_wait().unwrap().is_none();
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!(said, "refused refused refused refused refused refused\ndone done done");
    assert!(still, "the other process was ended");
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn system_v_ipc_is_not_shared_with_the_machine() {
    let bench = ExecFixture::new(SandboxChoice::Landlock);
    let script = "print(call(29, 0, 4096, 0o1600), call(64, 0, 1, 0o1600), call(68, 0, 0o1600), call(240, b'octo-test', 0o102, 0o600, 0))";
    assert_eq!(python(&bench, script).await, "-1 -1 -1 -1");
}

/// Each file is opened for writing and not changed.
#[tokio::test]
async fn the_kernel_s_settings_cannot_be_written() {
    for choice in confining_sandboxes() {
        let bench = ExecFixture::new(choice);
        let script = r"
found = []
for top in ['/proc/sys/kernel', '/proc/sys/vm', '/proc/sys/fs', '/proc/irq', '/proc/bus', '/proc/fs', '/proc/acpi', '/proc/scsi']:
    for folder, _, files in os.walk(top):
        found += [os.path.join(folder, name) for name in files]
found.append('/proc/sysrq-trigger')
def opens(path):
    try:
        os.close(os.open(path, os.O_WRONLY))
        return True
    except OSError:
        return False
print([path for path in found if opens(path)])
";
        assert_eq!(python(&bench, script).await, "[]", "{choice:?}");
    }
}
