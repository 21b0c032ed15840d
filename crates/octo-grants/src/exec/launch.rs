//! The launcher: a process of its own between the hub and a program.
//!
//! It has one thread. It confines and starts the program, adopts every process that loses its parent, and ends all of
//! them as soon as the program has ended, the hub asks for it, or the hub is gone. The hub's end is noticed by the
//! control socket alone: a death signal would come when the *thread* that started the launcher ends.

use super::descendants::{descendants, end_all, reap, signal_all, threads_of_machine};
use super::plan::{Bounds, Confine, DRAIN, Plan, Report, TERMINATE};
use super::{confine, raw};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd, retry_on_intr};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitStatus, getpid, getppid, getrlimit,
    ioctl_tiocsctty, pidfd_open, set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal,
    setrlimit, setsid,
};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How often a program's processes are counted, and those that have ended forgotten.
const TICK: Duration = Duration::from_millis(50);
/// The same where they are not counted: a server may be idle for days, and its launcher with it.
const SLOW_TICK: Duration = Duration::from_secs(5);
/// A plan is a command line and an environment.
const MAX_PLAN: usize = 64 << 20;

/// The whole life of a launcher. Its standard input is the control socket. Must be called before anything else in the
/// process has opened a file or started a thread.
pub fn main(_: impl IntoIterator<Item = OsString>) -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// How a test binary is its own launcher: it has an ignored test of this name that only calls [`main`].
pub fn in_tests(name: &str) -> io::Result<Vec<OsString>> {
    let mut words = vec![std::env::current_exe()?.into_os_string()];
    words.extend(["--exact", name, "--ignored", "--test-threads=1", "--nocapture"].map(OsString::from));
    Ok(words)
}

fn work() -> io::Result<()> {
    raw::close_others()?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Only that it is set counts.
    set_child_subreaper(Some(getpid()))?;
    let control = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (plan, descriptors) = receive(&control)?;
    let scratch = plan.scratch.clone();
    let outcome = match start(plan, descriptors) {
        Ok(program) => program.attend(&control),
        Err(failed) => tell(&control, &failed),
    };
    if let Some(scratch) = scratch {
        std::fs::remove_dir_all(scratch)?;
    }
    outcome
}

fn tell(mut control: &File, report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    control.write_all(&line)
}

fn receive(mut control: &File) -> io::Result<(Plan, [OwnedFd; 3])> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut passed = RecvAncillaryBuffer::new(&mut space);
    let mut length = [0; 4];
    let got = retry_on_intr(|| {
        recvmsg(control, &mut [IoSliceMut::new(&mut length)], &mut passed, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut descriptors = Vec::new();
    for message in passed.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let descriptors = descriptors.try_into().map_err(|_| io::Error::other("three descriptors are needed"))?;
    let length = u32::from_ne_bytes(length) as usize;
    if got.bytes != 4 || length > MAX_PLAN {
        return Err(io::Error::other("no plan"));
    }
    let mut text = vec![0; length];
    control.read_exact(&mut text)?;
    Ok((serde_json::from_slice(&text)?, descriptors))
}

struct Program {
    pid: i32,
    /// Bubblewrap itself, which would take everything with it if it were asked to end.
    wrapped: bool,
    processes: u64,
    threads_before: u64,
    status: Option<WaitStatus>,
}

fn start(plan: Plan, descriptors: [OwnedFd; 3]) -> Result<Program, Report> {
    let failed = |why: String| Report::Failed { errno: None, why };
    let mut confinement = plan.confine.confinement().map_err(failed)?;
    let (mut command, kept) = command(&plan).map_err(|error| failed(error.to_string()))?;
    let wrapped = matches!(plan.confine, Confine::Bubblewrap { .. });
    let Plan { bounds, tty, .. } = plan;
    let threads_before = threads_of_machine();
    let [input, output, errors] = descriptors;
    let launcher = getpid();
    command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::from(errors));
    raw::before_exec(&mut command, move || {
        setsid()?;
        // In bubblewrap the terminal is taken further inside.
        if tty && !wrapped {
            ioctl_tiocsctty(io::stdin())?;
        }
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(launcher) {
            return Err(io::Error::other("the launcher is gone"));
        }
        bound(&bounds, threads_before)?;
        for file in &kept {
            fcntl_setfd(file, FdFlags::empty())?;
        }
        confinement.as_mut().map_or(Ok(()), confine::Confinement::put_on)
    });
    match command.spawn() {
        Ok(child) => {
            let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
            Ok(Program { pid, wrapped, processes: bounds.processes, threads_before, status: None })
        }
        Err(error) => Err(Report::Failed { errno: error.raw_os_error(), why: error.to_string() }),
    }
}

/// The command, and what it must inherit.
fn command(plan: &Plan) -> io::Result<(Command, Vec<File>)> {
    let mut words = plan.argv.iter();
    let program = words.next().ok_or_else(|| io::Error::other("no program"))?;
    if let Confine::Bubblewrap { program: wrapper, args } = &plan.confine {
        let filters = confine::filters_of_namespaces().map_err(io::Error::other)?;
        let mut text = Vec::new();
        let mut say = |word: &[u8]| {
            text.extend_from_slice(word);
            text.push(0);
        };
        args.iter().for_each(|word| say(word.as_encoded_bytes()));
        for (name, value) in &plan.env {
            say(b"--setenv");
            say(name.as_encoded_bytes());
            say(value.as_encoded_bytes());
        }
        let args = in_memory(&text)?;
        let mut command = Command::new(wrapper);
        command.arg("--args").arg(args.as_raw_fd().to_string());
        let mut kept = vec![args];
        for filter in &filters {
            let filter = in_memory(filter)?;
            command.arg("--add-seccomp-fd").arg(filter.as_raw_fd().to_string());
            kept.push(filter);
        }
        command.arg("--").arg(program).args(words).env_clear().current_dir("/");
        return Ok((command, kept));
    }
    let mut command = Command::new(program);
    command
        .args(words)
        .env_clear()
        .envs(plan.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&plan.cwd);
    Ok((command, Vec::new()))
}

fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("octo", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Sets limits, which never go above those that are set already.
fn bound(bounds: &Bounds, threads: u64) -> io::Result<()> {
    // The kernel counts every thread of the user, so room is left for those that are there. It does not count root's.
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

/// Why watching is over.
enum Watched {
    /// The program has ended, and the hub knows.
    Told,
    /// The hub wants it to end.
    Cut,
    TooMany,
}

impl Program {
    /// Until its end or the hub's word, and then ends all that is left, whatever went wrong.
    fn attend(mut self, control: &File) -> io::Result<()> {
        let watched = self.watch(control);
        end_all(|pid, status| self.note(pid, status));
        match watched? {
            Watched::Told => {}
            Watched::Cut => self.report(control, false),
            Watched::TooMany => self.report(control, true),
        }
        Ok(())
    }

    fn watch(&mut self, control: &File) -> io::Result<Watched> {
        tell(control, &Report::Started { pid: self.pid })?;
        let pid = Pid::from_raw(self.pid).ok_or_else(|| io::Error::other("no process"))?;
        let held = pidfd_open(pid, PidfdFlags::empty())?;
        let mut told: Option<Instant> = None;
        while told.is_none_or(|at| at.elapsed() < 2 * DRAIN) && self.hear(control, &held, told.is_some())? {
            reap(|pid, status| self.note(pid, status));
            if told.is_none() && self.status.is_some() {
                self.report(control, false);
                told = Some(Instant::now());
            }
            if told.is_none() && self.too_many() {
                return Ok(Watched::TooMany);
            }
        }
        Ok(if told.is_some() { Watched::Told } else { Watched::Cut })
    }

    /// Waits for something to happen; false when the hub wants everything to end, or is no more.
    fn hear(&self, mut control: &File, held: &OwnedFd, ended: bool) -> io::Result<bool> {
        let mut sources = vec![PollFd::new(control, PollFlags::IN)];
        if !ended {
            sources.push(PollFd::new(held, PollFlags::IN));
        }
        let tick = if self.processes == 0 && !ended { SLOW_TICK } else { TICK };
        let tick = Timespec { tv_sec: tick.as_secs().cast_signed(), tv_nsec: i64::from(tick.subsec_nanos()) };
        retry_on_intr(|| poll(&mut sources, Some(&tick)))?;
        if sources.first().is_none_or(|source| source.revents().is_empty()) {
            return Ok(true);
        }
        let mut word = [0];
        match control.read(&mut word) {
            Ok(1) if word == [TERMINATE] => {
                signal_all(Signal::TERM, |pid| self.wrapped && pid == self.pid);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn too_many(&self) -> bool {
        self.processes > 0
            && threads_of_machine() > self.threads_before + self.processes
            && descendants().len() as u64 > self.processes
    }

    fn note(&mut self, pid: i32, status: WaitStatus) {
        if pid == self.pid && (status.exited() || status.signaled()) {
            self.status = Some(status);
        }
    }

    /// The hub may be gone.
    fn report(&self, control: &File, too_many: bool) {
        let code = self.status.and_then(WaitStatus::exit_status);
        let signal = self.status.and_then(WaitStatus::terminating_signal);
        let _ = tell(control, &Report::Ended { code, signal, too_many });
    }
}
