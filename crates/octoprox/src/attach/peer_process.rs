//! The process at the other end of a connection: checked when it connects, and watched until it ends.

use super::confinement::Confinement;
use octo_grants::exec::ProcessWatch;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::io;
use tokio::net::UnixStream;

/// Refuses other users, and processes that are confined more or less than this one. Needs a runtime.
pub fn check_peer(stream: &UnixStream, own: &Confinement) -> io::Result<ProcessWatch> {
    let refused = |why: &str| io::Error::new(io::ErrorKind::PermissionDenied, why);
    let credentials = socket_peercred(stream)?;
    if credentials.uid != geteuid() {
        return Err(refused("another user"));
    }
    let process = ProcessWatch::new(credentials.pid)?;
    let peer = Confinement::of_process(credentials.pid.as_raw_nonzero().get())?;
    if !own.is_same_for(&peer) {
        return Err(refused("the process is confined differently"));
    }
    // Otherwise the number could belong to a later process.
    if process.has_ended()? {
        return Err(refused("the process has ended"));
    }
    Ok(process)
}
