//! Owner of a connection on this machine.

use octo_grants::socket_owner;
use tokio::net::TcpStream;

/// Owner of the other end of a connection, for the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerOwner {
    /// The user that the hub runs as, or root.
    OwnUser,
    /// Another user, another machine, or unknown.
    Other,
}

impl PeerOwner {
    /// Determined once per connection. An unknown owner counts as another user.
    pub fn of_stream(stream: &TcpStream) -> Self {
        let ends = || Some((stream.local_addr().ok()?, stream.peer_addr().ok()?));
        let Some((local, peer)) = ends() else { return Self::Other };
        if !peer.ip().to_canonical().is_loopback() {
            return Self::Other;
        }
        let own = rustix::process::geteuid().as_raw();
        let is_own = match socket_owner(local, peer) {
            Ok(owner) => owner.is_some_and(|uid| uid == own || uid == 0),
            Err(error) => {
                tracing::warn!(%error, "cannot determine the owner of a connection");
                false
            }
        };
        // The connection is still open, so the owner found is that of its other end, not of a later one with the same
        // port.
        if is_own && ends() == Some((local, peer)) { Self::OwnUser } else { Self::Other }
    }
}
