//! Finds the hub of this process, or starts it in the background.

use super::hub_key::HubKey;
use super::hub_socket::{HubFiles, RuntimeDir};
use super::log_rotation::open_log;
use super::program_file::ProgramFile;
use crate::settings::{Environment, Flags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Hidden command that runs the hub.
pub const HUB_COMMAND: &str = "hub";
const START_TIMEOUT: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

/// Everything that determines which hub is the right one.
pub struct HubStartup {
    pub program: ProgramFile,
    pub world: Environment,
    pub flags: Flags,
    dir: RuntimeDir,
}

impl HubStartup {
    /// Fails if there is no directory for sockets.
    pub fn new(flags: &Flags) -> io::Result<Self> {
        let world = Environment::current();
        let dir = RuntimeDir::open(world.variable("XDG_RUNTIME_DIR"))?;
        Ok(Self { program: ProgramFile::own()?, world, flags: flags.clone(), dir })
    }

    pub fn files(&self) -> io::Result<HubFiles> {
        Ok(self.dir.files(&HubKey::new(&self.program, &self.world, &self.flags, &self.dir.digests()?)?))
    }

    /// Connects to the hub if it runs.
    pub fn connect(&self) -> io::Result<UnixStream> {
        self.files()?.connect()
    }

    /// Connects to the hub, and starts it first if necessary.
    pub fn connect_or_start(&self) -> io::Result<UnixStream> {
        let files = self.files()?;
        if let Ok(stream) = files.connect() {
            return Ok(stream);
        }
        let _lock = files.lock()?;
        if let Ok(stream) = files.connect() {
            return Ok(stream);
        }
        // Files that cannot be removed do no harm.
        let _ = self.dir.remove_old_files();
        self.start(&files)?;
        files.connect().map_err(|error| {
            io::Error::other(format!("the hub does not run: {error}; its log is {}", files.log.display()))
        })
    }

    /// Returns when the hub listens or has failed: either closes its end of a pipe.
    fn start(&self, files: &HubFiles) -> io::Result<()> {
        let program = self.program.open()?;
        let (mut started, keeps_open) = io::pipe()?;
        let mut command = Command::new(program.start_path());
        command
            .arg0("octoprox")
            .args([HUB_COMMAND, "--detach", "--socket"])
            .arg(&files.socket)
            .current_dir(octo_grants::NEUTRAL_DIR)
            .stdin(Stdio::null())
            .stdout(keeps_open)
            .stderr(open_log(&files.log)?);
        let status = command.status();
        drop(command);
        if !status?.success() {
            return Err(io::Error::other(format!(
                "the hub cannot start; its log is {}",
                files.log.display()
            )));
        }
        if poll(&mut [PollFd::new(&started, PollFlags::IN)], Some(&START_TIMEOUT))? == 0 {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        started.read(&mut [0]).map(drop)
    }
}

/// Starts the hub as a process without a parent that waits for it. Standard output and standard error go with it.
pub fn detach(socket: &Path) -> io::Result<()> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("octoprox").args([HUB_COMMAND, "--socket"]).arg(socket);
    command.current_dir(octo_grants::NEUTRAL_DIR).stdin(Stdio::null()).spawn().map(drop)
}
