//! Network access through a proxy: the only thing in the program's network namespace is a port of the hub.
//!
//! The hub may not enter a namespace that bubblewrap creates. Instead, the launcher's program runs in the sandbox first: it
//! opens the port there, passes the listening socket to the hub, and becomes the actual program.

use super::launcher::receive_part;
use super::sys;
use octo_model::ToolError;
use rustix::fs::{Mode, OFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::ffi::OsString;
use std::io::{self, IoSlice, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// First argument of the launcher in the sandbox, followed by the number of the socket and the program.
pub(super) const OPENER: &str = "open-proxy-port";

/// Timeout for the program in the sandbox to open the port.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Variables that libraries read the proxy's URL from.
const PROXY_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
/// The program's own ports are not reached through the proxy.
const DIRECT_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];
const DIRECT_HOSTS: &str = "localhost,127.0.0.1,::1";

/// Path of the launcher's program in the sandbox.
pub(super) const OPENER_PATH: &str = "/run/octoprox-launcher";

/// Program that opens the port, without the number of the socket.
pub(super) fn opener(launcher: &[OsString]) -> Vec<OsString> {
    let args = launcher.iter().skip(1).cloned();
    std::iter::once(OPENER_PATH.into()).chain(args).chain([OPENER.into()]).collect()
}

/// Opens the launcher's program, which is bound to [`OPENER_PATH`]. Its own path may be `/proc/self/exe`.
pub(super) fn open_opener(launcher: &[OsString]) -> io::Result<OwnedFd> {
    let program = launcher.first().ok_or_else(|| io::Error::other("no launcher"))?;
    Ok(rustix::fs::open(program, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// The hub's end of the socket over which the port arrives.
pub(super) struct PortReceiver(UnixStream);

/// The hub's end, and the end of the program in the sandbox.
pub(super) fn port_channel() -> io::Result<(PortReceiver, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(OPEN_TIMEOUT))?;
    Ok((PortReceiver(ours), theirs.into()))
}

impl PortReceiver {
    /// Waits for the listening socket.
    pub async fn receive(self) -> io::Result<TcpListener> {
        let receive = move || {
            let mut received = Vec::new();
            receive_part(&self.0, &mut [0], &mut received)?;
            let socket = received.pop().ok_or_else(|| io::Error::other("no socket received"))?;
            let listener = TcpListener::from(socket);
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        tokio::task::spawn_blocking(receive).await.map_err(io::Error::other)?
    }
}

/// Opens the port, passes it on and becomes the program. Returns only on failure. Must be called before anything else in
/// the process has opened a file or started a thread.
pub(super) fn open_and_exec(args: &[OsString]) -> ExitCode {
    let failed = match open_port(args) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    };
    // Standard error of the program, which the hub reads.
    let _ = writeln!(io::stderr(), "the program cannot be started in its own network: {failed}");
    ExitCode::FAILURE
}

/// Opens the port and returns the program.
fn open_port(args: &[OsString]) -> io::Result<Command> {
    let [number, program, rest @ ..] = args else { return Err(io::Error::other("no program")) };
    let number = number.to_str().and_then(|number| number.parse().ok());
    let socket = sys::inherited_socket(number.ok_or_else(|| io::Error::other("no socket"))?)?;
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let proxy = format!("http://{}", listener.local_addr()?);
    let passed = [listener.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(&passed));
    sendmsg(&socket, &[IoSlice::new(&[0])], &mut rights, SendFlags::NOSIGNAL)?;
    drop((listener, socket));
    let mut command = Command::new(program);
    command.args(rest).envs(PROXY_VARIABLES.map(|name| (name, proxy.as_str())));
    // Node.js ignores the other variables without it.
    command.env("NODE_USE_ENV_PROXY", "1").envs(DIRECT_VARIABLES.map(|name| (name, DIRECT_HOSTS)));
    Ok(command)
}

/// Landlock restricts ports, not addresses, so a list of hosts could not be enforced.
pub(super) fn unsupported_error() -> ToolError {
    ToolError::unavailable("A list of hosts can be enforced only with bubblewrap, which does not work here.")
        .hint(
            "Ask the operator to install bubblewrap, or to allow all hosts with `sandbox: {network: true}`.",
        )
}
