//! Owner of the other end of a local connection: the kernel knows which user owns the socket.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// User who owns the other end of an accepted connection: `local` is our end, `peer` the other. `None` if this
/// machine has no such socket, for example because it is closed or in another network namespace.
#[cfg(target_os = "linux")]
pub fn socket_owner(local: SocketAddr, peer: SocketAddr) -> io::Result<Option<u32>> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink, socket_with};
    // The kernel replies before the write returns, so waiting is unnecessary.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG))?;
    let (local, peer) = (canonical(local), canonical(peer));
    rustix::io::write(&socket, &diag::request(peer, local))?;
    let mut reply = [0; 4_096];
    let length = rustix::io::read(&socket, &mut reply)?;
    diag::owner(reply.get(..length).unwrap_or_default(), peer, local)
}

/// Not implemented on other systems; callers that need the owner must refuse.
#[cfg(not(target_os = "linux"))]
pub fn socket_owner(_local: SocketAddr, _peer: SocketAddr) -> io::Result<Option<u32>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Converts IPv4-mapped IPv6 addresses to IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Messages of sock_diag(7): exact lookup of one TCP socket.
#[cfg(target_os = "linux")]
mod diag {
    use super::{IpAddr, SocketAddr, io};

    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLMSG_ERROR: u16 = 2;
    const NLM_F_REQUEST: u16 = 1;
    const AF_INET: u8 = 2;
    const AF_INET6: u8 = 10;
    const IPPROTO_TCP: u8 = 6;
    const HEADER_LEN: usize = 16;
    const ENOENT: i32 = 2;

    fn address(ip: IpAddr) -> [u8; 16] {
        let mut bytes = [0; 16];
        match ip {
            IpAddr::V4(ip) => bytes.iter_mut().zip(ip.octets()).for_each(|(to, from)| *to = from),
            IpAddr::V6(ip) => bytes = ip.octets(),
        }
        bytes
    }

    /// `nlmsghdr` and `inet_diag_req_v2` for the socket whose own end is `source`.
    pub fn request(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
        const LENGTH: u32 = 72;
        let mut bytes = Vec::with_capacity(LENGTH as usize);
        bytes.extend(LENGTH.to_ne_bytes());
        bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        bytes.extend(NLM_F_REQUEST.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend([if source.is_ipv4() { AF_INET } else { AF_INET6 }, IPPROTO_TCP, 0, 0]);
        // All states.
        bytes.extend(u32::MAX.to_ne_bytes());
        bytes.extend(source.port().to_be_bytes());
        bytes.extend(destination.port().to_be_bytes());
        bytes.extend(address(source.ip()));
        bytes.extend(address(destination.ip()));
        // No interface, and no cookie of an earlier reply.
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend([0xff; 8]);
        bytes
    }

    /// The user in an `inet_diag_msg`. A socket that no process has open has no inode and is reported as root's; it
    /// counts as having no owner.
    pub fn owner(reply: &[u8], source: SocketAddr, destination: SocketAddr) -> io::Result<Option<u32>> {
        let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let word = |at: usize| -> io::Result<u32> {
            let bytes = reply.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_ne_bytes).ok_or_else(short)
        };
        let half = |at: usize| -> io::Result<[u8; 2]> {
            reply.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).ok_or_else(short)
        };
        match u16::from_ne_bytes(half(4)?) {
            SOCK_DIAG_BY_FAMILY => {}
            NLMSG_ERROR => {
                let code = i32::from_ne_bytes(word(HEADER_LEN)?.to_ne_bytes()).saturating_neg();
                return if code == ENOENT { Ok(None) } else { Err(io::Error::from_raw_os_error(code)) };
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        // If nothing is connected, the kernel returns a listener on that port.
        let ports = (half(HEADER_LEN + 4)?, half(HEADER_LEN + 6)?);
        if ports != (source.port().to_be_bytes(), destination.port().to_be_bytes()) {
            return Ok(None);
        }
        let (uid, inode) = (word(HEADER_LEN + 64)?, word(HEADER_LEN + 68)?);
        Ok((inode != 0).then_some(uid))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_owner_of_an_open_socket_is_known_and_a_closed_one_has_none() {
        let own = rustix::process::geteuid().as_raw();
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(host).unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            let local = accepted.local_addr().unwrap();
            assert_eq!(socket_owner(local, peer).unwrap(), Some(own), "{host}");
            // A half-closed socket still has an owner.
            client.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(socket_owner(local, peer).unwrap(), Some(own), "{host}");
            drop(client);
            assert_eq!(socket_owner(local, peer).unwrap(), None, "{host}: nobody has it open");
            drop(accepted);
            assert_eq!(socket_owner(local, peer).unwrap(), None, "{host}");
        }
    }

    #[test]
    fn a_listener_on_the_port_is_not_taken_for_the_peer() {
        let (one, two) =
            (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let found = socket_owner(one.local_addr().unwrap(), two.local_addr().unwrap()).unwrap();
        assert_eq!(found, None);
    }

    #[test]
    fn an_address_written_as_ipv6_is_the_same() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"x").unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        let local = accepted.local_addr().unwrap();
        let IpAddr::V4(ip) = peer.ip() else { panic!("{peer}") };
        let mapped = |port| SocketAddr::new(ip.to_ipv6_mapped().into(), port);
        let found = socket_owner(mapped(local.port()), mapped(peer.port())).unwrap();
        assert_eq!(found, Some(rustix::process::geteuid().as_raw()));
    }

    /// Prints the cost of one lookup, with few and with many sockets on the machine.
    #[test]
    #[ignore = "a measurement"]
    fn what_a_look_costs() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut open = Vec::new();
        for count in [1, 400] {
            while open.len() < count {
                let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                open.push((client, listener.accept().unwrap()));
            }
            let (_, (accepted, peer)) = &open[0];
            let (local, begun) = (accepted.local_addr().unwrap(), std::time::Instant::now());
            for _ in 0..10_000 {
                assert!(socket_owner(local, *peer).unwrap().is_some());
            }
            println!("{count} connections: {:?} for each look", begun.elapsed() / 10_000);
        }
    }
}
