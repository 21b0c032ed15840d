//! Standard input and output without a blocking thread: the runtime polls pipes and sockets itself, which saves two
//! thread switches per message. Terminals and files use tokio's standard streams.

use rustix::fs::{FileType, fstat};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as Socket;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

pub type Input = Box<dyn AsyncRead + Send + Unpin>;
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

pub fn input() -> Input {
    let stdin = io::stdin();
    match pollable(&stdin) {
        Ok(PollableFd::Pipe(fd)) => match pipe::Receiver::from_owned_fd(fd) {
            Ok(pipe) => Box::new(pipe),
            Err(_) => Box::new(tokio::io::stdin()),
        },
        Ok(PollableFd::Socket(socket)) => Box::new(socket),
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

pub fn output() -> Output {
    let stdout = io::stdout();
    match pollable(&stdout) {
        Ok(PollableFd::Pipe(fd)) => match pipe::Sender::from_owned_fd(fd) {
            Ok(pipe) => Box::new(pipe),
            Err(_) => Box::new(tokio::io::stdout()),
        },
        Ok(PollableFd::Socket(socket)) => Box::new(socket),
        Err(_) => Box::new(tokio::io::stdout()),
    }
}

enum PollableFd {
    Pipe(OwnedFd),
    Socket(UnixStream),
}

/// Duplicates a pipe or socket for polling. Refuses a stream that is the same as standard error: both would become
/// non-blocking, and logs must not fail.
fn pollable(stream: &impl AsFd) -> io::Result<PollableFd> {
    let (this, error) = (fstat(stream)?, fstat(io::stderr())?);
    if (this.st_dev, this.st_ino) == (error.st_dev, error.st_ino) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let fd = stream.as_fd().try_clone_to_owned()?;
    match FileType::from_raw_mode(this.st_mode) {
        FileType::Fifo => Ok(PollableFd::Pipe(fd)),
        FileType::Socket => {
            let socket = Socket::from(fd);
            // Fails for network sockets, which are not used as standard streams.
            socket.local_addr()?;
            socket.set_nonblocking(true)?;
            UnixStream::from_std(socket).map(PollableFd::Socket)
        }
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}
