//! `octoprox stdio` attached to the background hub: copies lines between the client and the hub, and continues with
//! another hub when the hub ends. One thread without a runtime: there is one such process per session.

use super::hub_client::{AttachError, HubStream};
use super::hub_protocol::{Hello, Purpose, SessionRequest};
use super::hub_start::HubStartup;
use super::line_buffer::{Line, LineBuffer};
use super::program_file::ProgramFile;
use super::resumable_session::{ResumableSession, too_long_line};
use crate::app_error::AppError;
use crate::terminal::console;
use bytes::Bytes;
use octo_hub::ListOptions;
use octo_mcp::McpSettings;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;

const READ_BYTES: usize = 64 << 10;
/// A pipe that is ready accepts this much without blocking.
const MAX_WRITE_BYTES: usize = 4 << 10;
/// One side is not read while this much waits for the other.
const MAX_WAITING_BYTES: usize = 8 << 20;
/// Maximum wait for a hub that the session has left to close the connection.
const LEAVE_TIMEOUT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

pub struct SessionRelay {
    startup: HubStartup,
    hello: Hello,
    session: ResumableSession,
    hub: Option<HubConnection>,
    from_client: LineBuffer,
    /// Bytes for the client, of which the first ones are written.
    to_client: Vec<u8>,
    client_written: usize,
    /// Whether the client sends nothing more.
    is_input_over: bool,
    /// A newer program whose hub did not take the session.
    failed_successor: Option<ProgramFile>,
}

struct HubConnection {
    hub: HubStream,
    /// Whether the session sends nothing more to this hub.
    is_leaving: bool,
}

/// What the wait ended with, per side.
#[derive(Default)]
struct Readiness {
    client_has_input: bool,
    client_takes_output: bool,
    client_is_gone: bool,
    hub_has_input: bool,
    hub_takes_output: bool,
    timed_out: bool,
}

impl SessionRelay {
    /// Attaches to the hub, so that invalid settings are reported before the client sends anything.
    pub fn attach(startup: HubStartup, profile: &str, options: ListOptions) -> Result<Self, AttachError> {
        let request = SessionRequest::new(&startup.world, &startup.flags, profile, options);
        let hello = Hello::new(Purpose::Session(request));
        let hub = HubStream::attach_or_start(&startup, &hello)?;
        hub.stream.set_nonblocking(true)?;
        let mut session = ResumableSession::default();
        session.join_hub(hub.drain_token.clone());
        hub.notices.iter().for_each(|notice| console::print_err(&format!("octoprox: {notice}")));
        Ok(Self {
            startup,
            hello,
            session,
            hub: Some(HubConnection { hub, is_leaving: false }),
            from_client: LineBuffer::new(McpSettings::default().max_body_bytes),
            to_client: Vec::new(),
            client_written: 0,
            is_input_over: false,
            failed_successor: None,
        })
    }

    /// Relays until the client ends the session.
    pub fn run(mut self) -> Result<(), AppError> {
        loop {
            self.settle();
            if self.is_input_over && self.hub.is_none() && self.to_client.is_empty() {
                return Ok(());
            }
            let ready = self.wait()?;
            if ready.client_is_gone {
                return Ok(());
            }
            if ready.timed_out {
                self.lose_hub();
                continue;
            }
            if ready.client_takes_output {
                self.write_client()?;
            }
            if ready.hub_has_input {
                self.read_hub();
            }
            if ready.client_has_input {
                self.read_client()?;
            }
            if ready.hub_takes_output {
                self.write_hub();
            }
        }
    }

    /// Joins or leaves hubs as the session requires.
    fn settle(&mut self) {
        if self.hub.is_none() && self.session.needs_hub() {
            self.join_hub();
        }
        let successor = self.session.drain().and_then(|drain| drain.successor.as_ref());
        if successor.is_some() && successor == self.failed_successor.as_ref() {
            self.session.ignore_drain();
        }
        if let Some(drain) = self.session.ready_to_leave().cloned()
            && self.hub.as_ref().is_some_and(|connection| !connection.is_leaving)
        {
            if let Some(successor) = drain.successor {
                self.startup.program = successor;
            }
            self.leave_hub();
        }
        let has_nothing_to_send = self.session.next_bytes().is_none();
        if self.is_input_over
            && has_nothing_to_send
            && self.hub.as_ref().is_some_and(|connection| !connection.is_leaving)
        {
            self.leave_hub();
        }
    }

    fn join_hub(&mut self) {
        let attached = HubStream::attach_or_start(&self.startup, &self.hello);
        let attached = attached.and_then(|hub| {
            hub.stream.set_nonblocking(true)?;
            Ok(hub)
        });
        match attached {
            Ok(hub) => {
                self.session.join_hub(hub.drain_token.clone());
                self.hub = Some(HubConnection { hub, is_leaving: false });
                self.take_hub_lines();
            }
            Err(_) if self.give_up_successor() => self.join_hub(),
            Err(error) => {
                let errors = self.session.give_up(AppError::from(error).text());
                self.send_client(errors);
            }
        }
    }

    /// Returns to the own program if a newer one does not serve the session. Returns false if it is the own one.
    fn give_up_successor(&mut self) -> bool {
        let Ok(own) = ProgramFile::own() else { return false };
        if own == self.startup.program {
            return false;
        }
        self.failed_successor = Some(std::mem::replace(&mut self.startup.program, own));
        true
    }

    /// Sends nothing more. The hub ends the connection once it has sent everything.
    fn leave_hub(&mut self) {
        let Some(connection) = &mut self.hub else { return };
        connection.is_leaving = true;
        let cancels = self.session.cancel_streams();
        let stream = &connection.hub.stream;
        let sent = stream.set_nonblocking(false).and_then(|()| {
            io::Write::write_all(&mut &*stream, &cancels)?;
            stream.shutdown(Shutdown::Write)?;
            stream.set_nonblocking(true)
        });
        if sent.is_err() {
            self.lose_hub();
        }
    }

    fn lose_hub(&mut self) {
        self.hub = None;
        let errors = self.session.lose_hub();
        self.send_client(errors);
    }

    fn send_client(&mut self, lines: Vec<Bytes>) {
        self.to_client.extend(lines.concat());
    }

    fn wait(&self) -> io::Result<Readiness> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let reads_client = !self.is_input_over && self.session.queued_bytes() < MAX_WAITING_BYTES;
        let when = |condition: bool, flag: PollFlags| if condition { flag } else { PollFlags::empty() };
        // Without output, only errors of the standard output are of interest.
        let mut fds = vec![PollFd::new(&stdout, when(!self.to_client.is_empty(), PollFlags::OUT))];
        let client = reads_client.then_some(fds.len());
        if reads_client {
            fds.push(PollFd::new(&stdin, PollFlags::IN));
        }
        let hub = self.hub.as_ref().map(|_| fds.len());
        let mut timeout = None;
        if let Some(connection) = &self.hub {
            let reads = when(self.to_client.len() < MAX_WAITING_BYTES, PollFlags::IN);
            let writes = !connection.is_leaving && self.session.next_bytes().is_some();
            fds.push(PollFd::new(&connection.hub.stream, reads | when(writes, PollFlags::OUT)));
            timeout = (connection.is_leaving && !self.is_input_over).then_some(&LEAVE_TIMEOUT);
        }
        let count = match poll(&mut fds, timeout) {
            Err(Errno::INTR) => return Ok(Readiness::default()),
            count => count?,
        };
        let flags =
            |at: Option<usize>| at.and_then(|at| fds.get(at)).map_or(PollFlags::empty(), PollFd::revents);
        let any = |found: PollFlags, wanted: PollFlags| found.intersects(wanted);
        let ended = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        let (output, input, hub) = (flags(Some(0)), flags(client), flags(hub));
        Ok(Readiness {
            client_takes_output: any(output, PollFlags::OUT),
            client_is_gone: any(output, ended),
            client_has_input: any(input, PollFlags::IN | ended),
            hub_has_input: any(hub, PollFlags::IN | ended),
            hub_takes_output: any(hub, PollFlags::OUT),
            timed_out: count == 0,
        })
    }

    fn read_client(&mut self) -> Result<(), AppError> {
        let mut bytes = [0; READ_BYTES];
        match read(io::stdin().as_fd(), &mut bytes[..]) {
            Ok(0) | Err(Errno::IO) => {
                self.is_input_over = true;
                if let Some(line) = self.from_client.last_line() {
                    self.take_client_line(line);
                }
            }
            Ok(count) => {
                self.from_client.push(bytes.get(..count).unwrap_or_default());
                while let Some(line) = self.from_client.next_line() {
                    self.take_client_line(line);
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        Ok(())
    }

    fn take_client_line(&mut self, line: Line) {
        match line {
            Line::Complete(line) => self.session.accept_client_line(line.into()),
            Line::TooLong => {
                self.send_client(vec![too_long_line(McpSettings::default().max_body_bytes)]);
            }
        }
    }

    fn write_client(&mut self) -> Result<(), AppError> {
        let end = self.to_client.len().min(self.client_written + MAX_WRITE_BYTES);
        match write(io::stdout().as_fd(), self.to_client.get(self.client_written..end).unwrap_or_default()) {
            Ok(count) => self.client_written += count,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        if self.client_written == self.to_client.len() {
            self.client_written = 0;
            self.to_client.clear();
            self.to_client.shrink_to(READ_BYTES);
        }
        Ok(())
    }

    fn read_hub(&mut self) {
        let Some(connection) = &mut self.hub else { return };
        let mut bytes = [0; READ_BYTES];
        match read(&connection.hub.stream, &mut bytes[..]) {
            Ok(0) => self.lose_hub(),
            Ok(count) => {
                connection.hub.received.push(bytes.get(..count).unwrap_or_default());
                self.take_hub_lines();
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.lose_hub(),
        }
    }

    fn take_hub_lines(&mut self) {
        let Some(connection) = &mut self.hub else { return };
        while let Some(line) = connection.hub.received.next_line() {
            if let Line::Complete(line) = line
                && let Some(line) = self.session.accept_hub_line(line.into())
            {
                self.to_client.extend(line);
            }
        }
    }

    fn write_hub(&mut self) {
        let Some(connection) = &self.hub else { return };
        while let Some(bytes) = self.session.next_bytes() {
            match write(&connection.hub.stream, bytes) {
                Ok(count) => self.session.mark_written(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // What the hub has sent before its end is read first.
                Err(_) => return,
            }
        }
    }
}
