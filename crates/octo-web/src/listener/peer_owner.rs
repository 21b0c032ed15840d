//! Who has opened a connection, as far as this machine knows.

use octo_grants::socket_owner;
use tokio::net::TcpStream;

/// Who is at the other end of a connection, as the edge sees it on each of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerOwner {
    /// The user whom the hub runs as, or root.
    OwnUser,
    /// Another user of this machine, another machine, or nobody can tell.
    Other,
}

impl PeerOwner {
    /// Looks once for each connection. Refuses to guess: what cannot be found out is somebody else.
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
                tracing::warn!(%error, "the owner of a connection cannot be found out");
                false
            }
        };
        // The connection still stands, so what was found is its own other end and not a later one's with the same port.
        if is_own && ends() == Some((local, peer)) { Self::OwnUser } else { Self::Other }
    }
}
