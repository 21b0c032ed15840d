//! Connection of a session or command to its hub.

use super::hub_protocol::{Hello, HelloReply, Refusal, from_line, to_line};
use super::hub_start::HubStartup;
use super::line_buffer::{Line, LineBuffer};
use crate::app_error::AppError;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Hubs that end just now are tried again.
const MAX_ATTEMPTS: usize = 8;
/// The hub loads settings and opens the workspace meanwhile.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 16 << 10;

/// A connection after the first exchange.
pub struct HubStream {
    pub stream: UnixStream,
    /// Lines that have arrived.
    pub received: LineBuffer,
    /// What the hub says about the settings of the session.
    pub notices: Vec<String>,
    /// Token of the hub's request to leave.
    pub drain_token: String,
}

/// Why there is no connection.
#[derive(Debug)]
pub enum AttachError {
    /// No hub runs, or it cannot be started.
    Unavailable(io::Error),
    /// The hub refuses the session.
    Refused(Refusal),
}

impl From<io::Error> for AttachError {
    fn from(error: io::Error) -> Self {
        Self::Unavailable(error)
    }
}

impl From<AttachError> for AppError {
    fn from(error: AttachError) -> Self {
        match error {
            AttachError::Refused(refusal) => refusal.into(),
            AttachError::Unavailable(error) => Self::new(format!(
                "Cannot reach the background hub: {error}. See `octoprox logs`, or run with --standalone."
            )),
        }
    }
}

impl HubStream {
    /// Attaches to the hub, and starts it if necessary.
    pub fn attach_or_start(startup: &HubStartup, hello: &Hello) -> Result<Self, AttachError> {
        Self::attempt(hello, || startup.connect_or_start())
    }

    /// Attaches to the hub if it runs.
    pub fn attach(startup: &HubStartup, hello: &Hello) -> Result<Self, AttachError> {
        Self::attempt(hello, || startup.connect())
    }

    fn attempt(hello: &Hello, connect: impl Fn() -> io::Result<UnixStream>) -> Result<Self, AttachError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match Self::open(connect()?, hello, REPLY_TIMEOUT) {
                Ok((stream, HelloReply { refusal: None, notices, drain_token, .. })) => {
                    return Ok(Self { notices, drain_token, ..stream });
                }
                Ok((_, HelloReply { refusal: Some(refusal), .. })) => {
                    return Err(AttachError::Refused(refusal));
                }
                Err(error) if attempts >= MAX_ATTEMPTS || error.kind() == io::ErrorKind::TimedOut => {
                    return Err(error.into());
                }
                Err(_) => {}
            }
        }
    }

    /// Says what this connection is for, and waits for the reply.
    pub fn open(mut stream: UnixStream, hello: &Hello, timeout: Duration) -> io::Result<(Self, HelloReply)> {
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        stream.write_all(&to_line(hello))?;
        let mut opened = Self {
            stream,
            received: LineBuffer::new(usize::MAX - 1),
            notices: Vec::new(),
            drain_token: String::new(),
        };
        let reply = from_line(&opened.read_line()?).ok_or(io::ErrorKind::InvalidData)?;
        opened.stream.set_read_timeout(None)?;
        opened.stream.set_write_timeout(None)?;
        Ok((opened, reply))
    }

    /// Waits for a line.
    pub fn read_line(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = [0; READ_BYTES];
        loop {
            if let Some(Line::Complete(line)) = self.received.next_line() {
                return Ok(line);
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received.push(bytes.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
        }
    }
}
