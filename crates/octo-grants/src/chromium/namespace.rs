//! Listening socket in the browser's own, otherwise empty network namespace.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Address of the proxy there; the port is free because the namespace is new.
pub(super) const PROXY_ADDRESS: &str = "127.0.0.1:3128";

/// Whether the hub may enter other namespaces: needs `CAP_SYS_ADMIN`.
pub(super) fn may_enter() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Creates a listener in the namespace of the process that bubblewrap reported.
pub(super) async fn listener(said: &Mutex<Vec<u8>>, patience: Duration) -> io::Result<TcpListener> {
    let begun = Instant::now();
    loop {
        let pid = said.lock().ok().and_then(|said| child_pid(&said));
        // Loopback is brought up shortly after the process starts.
        let failed = match pid {
            Some(pid) => match tokio::task::spawn_blocking(move || listen_in(pid)).await? {
                Ok(listener) => return Ok(listener),
                Err(error) => error.to_string(),
            },
            None => "bubblewrap has not reported its child process".to_owned(),
        };
        if begun.elapsed() > patience {
            let said =
                said.lock().map(|said| String::from_utf8_lossy(&said).into_owned()).unwrap_or_default();
            return Err(io::Error::other(format!("no proxy in the browser's namespace: {failed}; {said}")));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// `"child-pid": 123`
fn child_pid(said: &[u8]) -> Option<u32> {
    let said = String::from_utf8_lossy(said);
    let (_, rest) = said.split_once("\"child-pid\"")?;
    let digits: String =
        rest.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    // The number may be incomplete while it is the last output.
    rest.contains('}').then(|| digits.parse().ok())?
}

/// Uses a separate thread, which ends in that namespace; the socket remains.
fn listen_in(pid: u32) -> io::Result<TcpListener> {
    let namespace = File::open(format!("/proc/{pid}/ns/net"))?;
    let work = move || -> io::Result<TcpListener> {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        let listener = TcpListener::bind(PROXY_ADDRESS)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    std::thread::Builder::new().spawn(work)?.join().map_err(|_| io::Error::other("a thread panicked"))?
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_process_is_found_once_it_was_said_completely() {
        for (said, pid) in [
            ("", None),
            ("{\n    \"child-pid\": 12", None),
            ("{\n    \"child-pid\": 1234\n}\n", Some(1234)),
            ("a warning\n{\n    \"child-pid\": 7,\n \"net-namespace\": 99}\n[1:1] more", Some(7)),
        ] {
            assert_eq!(super::child_pid(said.as_bytes()), pid, "{said}");
        }
    }
}
