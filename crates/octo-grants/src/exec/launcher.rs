//! The launcher: a separate process between the hub and a program.
//!
//! Single-threaded. It confines and starts the program, adopts every orphaned process, and kills all of them as soon
//! as the program has exited, the hub requests it, or the hub is gone. The end of the hub is detected by the control
//! socket only: a parent-death signal would fire when the *thread* that started the launcher ends.

use super::confine::{AbstractScope, UnixSockets};
use super::descendants::{descendants, kill_all, reap, signal_all, threads_of_machine};
use super::launcher_protocol::{
    BwrapArg, ConfinementPlan, Cwd, DRAIN_TIMEOUT, DescriptorSlot, LaunchPlan, LauncherReport,
    MAX_DESCRIPTORS, ProxyPortPlan, ResourceLimits, TERMINATE,
};
use super::{confine, proxy_port, sys, unprivileged};
use crate::fs::path_of;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd, retry_on_intr};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitStatus, fchdir, getpid, getppid,
    getrlimit, ioctl_tiocsctty, pidfd_open, set_child_subreaper, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit, setsid,
};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Interval for counting a program's processes and reaping those that have exited.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Interval when processes are not counted: a server may be idle for days, and its launcher with it.
const IDLE_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// A plan is a command line and an environment.
const MAX_PLAN_BYTES: usize = 64 << 20;

/// Main function of a launcher. Its standard input is the control socket. Must be called before anything else in the
/// process has opened a file or started a thread. Inside a sandbox it opens the port of a proxy instead; see
/// [`super::proxy_port`].
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if let [first, rest @ ..] = args.as_slice()
        && first == proxy_port::OPENER
    {
        return proxy_port::open_and_exec(rest);
    }
    match run_launcher() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Uses a test binary as its own launcher: it has an ignored test of this name that only calls [`main`].
pub fn test_launcher(name: &str) -> io::Result<Vec<OsString>> {
    let mut words = vec![std::env::current_exe()?.into_os_string()];
    words.extend(["--exact", name, "--ignored", "--test-threads=1", "--nocapture"].map(OsString::from));
    Ok(words)
}

fn run_launcher() -> io::Result<()> {
    sys::close_inherited_fds()?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Any PID enables it.
    set_child_subreaper(Some(getpid()))?;
    let control = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (plan, descriptors) = receive_plan(&control)?;
    let scratch = plan.scratch.clone();
    let outcome = match start_program(plan, descriptors) {
        Ok(program) => program.supervise(&control),
        Err(failed) => send_report(&control, &failed),
    };
    if let Some(scratch) = scratch {
        std::fs::remove_dir_all(scratch)?;
    }
    outcome
}

fn send_report(mut control: &File, report: &LauncherReport) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    control.write_all(&line)
}

fn receive_plan(mut control: &File) -> io::Result<(LaunchPlan, Vec<OwnedFd>)> {
    let mut descriptors = Vec::new();
    let mut lengths = [0; 8];
    receive_part(control, &mut lengths, &mut descriptors)?;
    let [a, b, c, d, e, f, g, h] = lengths;
    let (length, count) =
        (u32::from_ne_bytes([a, b, c, d]) as usize, u32::from_ne_bytes([e, f, g, h]) as usize);
    if length > MAX_PLAN_BYTES {
        return Err(io::Error::other("no plan"));
    }
    while descriptors.len() < count {
        receive_part(control, &mut [0], &mut descriptors)?;
    }
    let mut text = vec![0; length];
    control.read_exact(&mut text)?;
    Ok((serde_json::from_slice(&text)?, descriptors))
}

/// Receives one message: as many bytes as fit, and its descriptors.
pub(super) fn receive_part(
    control: impl AsFd,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<()> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut passed = RecvAncillaryBuffer::new(&mut space);
    let wanted = bytes.len();
    let got = retry_on_intr(|| {
        recvmsg(&control, &mut [IoSliceMut::new(bytes)], &mut passed, RecvFlags::CMSG_CLOEXEC)
    })?;
    for message in passed.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if got.bytes == wanted { Ok(()) } else { Err(io::Error::other("control socket closed")) }
}

struct LaunchedProgram {
    pid: i32,
    /// Bubblewrap itself, which would kill everything with it on SIGTERM.
    is_bubblewrap: bool,
    max_processes: u64,
    threads_before: u64,
    status: Option<WaitStatus>,
}

fn start_program(plan: LaunchPlan, mut descriptors: Vec<OwnedFd>) -> Result<LaunchedProgram, LauncherReport> {
    let failed = |why: String| LauncherReport::Failed { errno: None, why };
    let nobody = plan.nobody && unprivileged::is_root();
    if nobody {
        prepare_unprivileged(&plan, &mut descriptors)
            .map_err(|error| failed(format!("{}: {error}", unprivileged::FAILED_PREFIX)))?;
    }
    let mut confinement = plan.confine.confinement(&descriptors).map_err(failed)?;
    let mut scope = abstract_scope(&plan.confine, &descriptors);
    let unix = match &plan.confine {
        ConfinementPlan::Bubblewrap { shares_network: true, .. } if scope.is_none() => UnixSockets::Refused,
        _ => UnixSockets::Allowed,
    };
    let (mut command, mut kept) =
        build_command(&plan, &descriptors, unix).map_err(|error| failed(error.to_string()))?;
    let wrapped = matches!(plan.confine, ConfinementPlan::Bubblewrap { .. });
    let mut left = descriptors.into_iter();
    let (Some(input), Some(output), Some(errors)) = (left.next(), left.next(), left.next()) else {
        return Err(failed("three descriptors are required".to_owned()));
    };
    let mut left: Vec<Option<OwnedFd>> = left.map(Some).collect();
    let mut take = |slot: &DescriptorSlot| slot.0.checked_sub(3).and_then(|at| left.get_mut(at)?.take());
    let cwd = match &plan.cwd {
        Cwd::Folder(slot) => take(slot),
        Cwd::Path(_) => None,
    };
    // It must not reach the program, so it is closed on exec; bubblewrap closes what it has mounted.
    let wrapper = match &plan.confine {
        ConfinementPlan::Bubblewrap { program, .. } => take(program),
        ConfinementPlan::Nothing | ConfinementPlan::Landlock { .. } => None,
    };
    if wrapped {
        kept.extend(left.into_iter().flatten().map(File::from));
    }
    let LaunchPlan { bounds, tty, .. } = plan;
    let threads_before = threads_of_machine();
    let launcher = getpid();
    command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::from(errors));
    sys::before_exec(&mut command, move || {
        setsid()?;
        // With bubblewrap, the terminal is acquired inside the sandbox.
        if tty && !wrapped {
            ioctl_tiocsctty(io::stdin())?;
        }
        // Changing the user clears the signal that the next line requests.
        if nobody {
            unprivileged::drop_to_unprivileged()?;
        }
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(launcher) {
            return Err(io::Error::other("the launcher has exited"));
        }
        apply_limits(&bounds, threads_before)?;
        for file in &kept {
            fcntl_setfd(file, FdFlags::empty())?;
        }
        if let Some(cwd) = &cwd {
            fchdir(cwd)?;
        }
        scope.take().map_or(Ok(()), AbstractScope::apply)?;
        confinement.as_mut().map_or(Ok(()), confine::Confinement::apply)
    });
    let spawned = command.spawn();
    drop(wrapper);
    match spawned {
        Ok(child) => {
            let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
            Ok(LaunchedProgram {
                pid,
                is_bubblewrap: wrapped,
                max_processes: bounds.processes,
                threads_before,
                status: None,
            })
        }
        Err(error) => Err(LauncherReport::Failed { errno: error.raw_os_error(), why: error.to_string() }),
    }
}

/// Prepares the environment for a program of root to run unprivileged.
fn prepare_unprivileged(plan: &LaunchPlan, descriptors: &mut [OwnedFd]) -> io::Result<()> {
    let held = descriptors.iter().filter_map(|held| path_of(held.as_fd()).ok());
    let named = plan.argv.iter().chain(&plan.scratch).map(PathBuf::from);
    let needed: Vec<PathBuf> = held.chain(named).filter(|path| path.is_absolute()).collect();
    unprivileged::give_streams(descriptors.get(..3).unwrap_or_default())?;
    unprivileged::map_file_owners(&needed)?;
    if let Cwd::Folder(slot) = &plan.cwd
        && let Some(cwd) = descriptors.get_mut(slot.0)
    {
        *cwd = unprivileged::reopen_mapped(cwd.as_fd())?;
    }
    Ok(())
}

/// Hides the abstract sockets of the machine from a program that shares its network. A set-user-ID bubblewrap would not
/// work with it.
fn abstract_scope(confine: &ConfinementPlan, descriptors: &[OwnedFd]) -> Option<AbstractScope> {
    let ConfinementPlan::Bubblewrap { program, shares_network: true, .. } = confine else { return None };
    let about = rustix::fs::fstat(descriptors.get(program.0)?).ok()?;
    (about.st_mode & libc::S_ISUID == 0).then(AbstractScope::new).flatten()
}

/// The command, and the files that it must inherit besides the plan's descriptors.
fn build_command(
    plan: &LaunchPlan,
    descriptors: &[OwnedFd],
    unix: UnixSockets,
) -> io::Result<(Command, Vec<File>)> {
    let mut words = plan.argv.iter();
    let program = words.next().ok_or_else(|| io::Error::other("no program"))?;
    let ConfinementPlan::Bubblewrap { program: wrapper, args, .. } = &plan.confine else {
        let mut command = Command::new(program);
        command.args(words).env_clear().envs(plan.env.iter().map(|(name, value)| (name, value)));
        if let Cwd::Path(cwd) = &plan.cwd {
            command.current_dir(cwd);
        }
        return Ok((command, Vec::new()));
    };
    let number = |slot: &DescriptorSlot| {
        let held = descriptors.get(slot.0).ok_or_else(|| io::Error::other("missing descriptor"))?;
        io::Result::Ok(held.as_raw_fd().to_string())
    };
    let mut text = Vec::new();
    let mut say = |word: &[u8]| {
        text.extend_from_slice(word);
        text.push(0);
    };
    for word in args {
        match word {
            BwrapArg::Text(word) => say(word.as_encoded_bytes()),
            BwrapArg::Descriptor(slot) => say(number(slot)?.as_bytes()),
        }
    }
    for (name, value) in &plan.env {
        say(b"--setenv");
        say(name.as_encoded_bytes());
        say(value.as_encoded_bytes());
    }
    let args = memory_file(&text)?;
    // The file that was found at startup, even if its name now refers to another.
    let mut command = Command::new(format!("/proc/self/fd/{}", number(wrapper)?));
    command.arg("--args").arg(args.as_raw_fd().to_string());
    let mut kept = vec![args];
    for filter in &confine::namespace_filters(unix).map_err(io::Error::other)? {
        let filter = memory_file(filter)?;
        command.arg("--add-seccomp-fd").arg(filter.as_raw_fd().to_string());
        kept.push(filter);
    }
    command.arg("--");
    if let Some(ProxyPortPlan { opener, socket }) = &plan.proxy_port {
        command.args(opener).arg(number(socket)?);
    }
    command.arg(program).args(words).env_clear().current_dir("/");
    Ok((command, kept))
}

fn memory_file(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("octo", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Sets limits, never above the existing ones.
fn apply_limits(bounds: &ResourceLimits, threads: u64) -> io::Result<()> {
    // The kernel counts every thread of the user, so existing ones are added. It does not count root's.
    let processes = if bounds.processes == 0 { 0 } else { bounds.processes + threads };
    for (resource, most) in [
        (Resource::As, bounds.memory),
        (Resource::Nproc, processes),
        (Resource::Fsize, bounds.file),
        (Resource::Nofile, bounds.open_files),
    ] {
        if most > 0 {
            let most = getrlimit(resource).maximum.map_or(most, |set| set.min(most));
            setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
    }
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
}

/// Why supervision ended.
enum WatchEnd {
    /// The program has exited, and the hub was informed.
    Reported,
    /// The hub requested termination.
    Cancelled,
    TooManyProcesses,
}

impl LaunchedProgram {
    /// Supervises until the program exits or the hub requests an end, then kills everything that is
    /// left, even on errors.
    fn supervise(mut self, control: &File) -> io::Result<()> {
        let watched = self.watch(control);
        kill_all(|pid, status| self.record_exit(pid, status));
        match watched? {
            WatchEnd::Reported => {}
            WatchEnd::Cancelled => self.report_end(control, false),
            WatchEnd::TooManyProcesses => self.report_end(control, true),
        }
        Ok(())
    }

    fn watch(&mut self, control: &File) -> io::Result<WatchEnd> {
        send_report(control, &LauncherReport::Started { pid: self.pid })?;
        let pid = Pid::from_raw(self.pid).ok_or_else(|| io::Error::other("no process"))?;
        let held = pidfd_open(pid, PidfdFlags::empty())?;
        let mut told: Option<Instant> = None;
        while told.is_none_or(|at| at.elapsed() < 2 * DRAIN_TIMEOUT)
            && self.wait_for_event(control, &held, told.is_some())?
        {
            reap(|pid, status| self.record_exit(pid, status));
            if told.is_none() && self.status.is_some() {
                self.report_end(control, false);
                told = Some(Instant::now());
            }
            if told.is_none() && self.has_too_many() {
                return Ok(WatchEnd::TooManyProcesses);
            }
        }
        Ok(if told.is_some() { WatchEnd::Reported } else { WatchEnd::Cancelled })
    }

    /// Waits for an event; returns false if the hub wants everything to end or has exited.
    fn wait_for_event(&self, mut control: &File, held: &OwnedFd, ended: bool) -> io::Result<bool> {
        let mut sources = vec![PollFd::new(control, PollFlags::IN)];
        if !ended {
            sources.push(PollFd::new(held, PollFlags::IN));
        }
        let tick = if self.max_processes == 0 && !ended { IDLE_POLL_INTERVAL } else { POLL_INTERVAL };
        let tick = Timespec { tv_sec: tick.as_secs().cast_signed(), tv_nsec: i64::from(tick.subsec_nanos()) };
        retry_on_intr(|| poll(&mut sources, Some(&tick)))?;
        if sources.first().is_none_or(|source| source.revents().is_empty()) {
            return Ok(true);
        }
        let mut word = [0];
        match control.read(&mut word) {
            Ok(1) if word == [TERMINATE] => {
                signal_all(Signal::TERM, |pid| self.is_bubblewrap && pid == self.pid);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn has_too_many(&self) -> bool {
        self.max_processes > 0
            && threads_of_machine() > self.threads_before + self.max_processes
            && descendants().len() as u64 > self.max_processes
    }

    fn record_exit(&mut self, pid: i32, status: WaitStatus) {
        if pid == self.pid && (status.exited() || status.signaled()) {
            self.status = Some(status);
        }
    }

    /// Ignores errors, because the hub may have exited.
    fn report_end(&self, control: &File, too_many: bool) {
        let code = self.status.and_then(WaitStatus::exit_status);
        let signal = self.status.and_then(WaitStatus::terminating_signal);
        let _ = send_report(control, &LauncherReport::Ended { code, signal, too_many });
    }
}
