//! One session: frames out, messages in, and what is known of its state.

use super::dsn::Login;
use super::fault::ServerFault;
use super::stream::Stream;
use bytes::BytesMut;
use postgres_protocol::message::backend::{Header, Message};
use postgres_protocol::message::frontend;
use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How much is read at once.
const CHUNK: usize = 64 << 10;
/// For a cancel request to be delivered.
const CANCEL: Duration = Duration::from_secs(5);

/// Where the transaction stands, as the server says after each exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Idle,
    InTransaction,
    Failed,
}

/// A connection that has logged in.
pub struct Session {
    stream: Stream,
    inbox: BytesMut,
    /// Answers that are still to come.
    waiting: usize,
    standing: Standing,
    /// The longest message that is accepted.
    longest: usize,
    pub(super) key: Option<(i32, i32)>,
    pub(super) born: Instant,
}

impl Session {
    pub(super) fn new(stream: Stream, longest: usize) -> Self {
        Self {
            stream,
            inbox: BytesMut::with_capacity(CHUNK),
            waiting: 0,
            standing: Standing::Idle,
            longest,
            key: None,
            born: Instant::now(),
        }
    }

    /// Sends messages to which the server will answer with so many `ReadyForQuery`.
    pub async fn send(&mut self, frames: &[u8], answers: usize) -> io::Result<()> {
        self.waiting += answers;
        self.stream.write_all(frames).await?;
        self.stream.flush().await
    }

    /// The next message. One that is too long is an error, after which the session is of no use.
    pub async fn next(&mut self) -> io::Result<Message> {
        loop {
            if let Some(header) = Header::parse(&self.inbox)?
                && usize::try_from(header.len()).unwrap_or(usize::MAX) > self.longest
            {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "one message is too long"));
            }
            if let Some(message) = Message::parse(&mut self.inbox)? {
                if let Message::ReadyForQuery(body) = &message {
                    self.waiting = self.waiting.saturating_sub(1);
                    self.standing = match body.status() {
                        b'I' => Standing::Idle,
                        b'T' => Standing::InTransaction,
                        _ => Standing::Failed,
                    };
                }
                return Ok(message);
            }
            self.inbox.reserve(CHUNK);
            if self.stream.read_buf(&mut self.inbox).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Whether every answer has come.
    pub fn is_done(&self) -> bool {
        self.waiting == 0
    }

    pub fn standing(&self) -> Standing {
        self.standing
    }

    pub(super) fn is_usable(&self) -> bool {
        self.is_done() && self.inbox.is_empty() && self.stream.is_quiet()
    }

    /// Runs statements of ours, each by itself, and gives the fields of all rows.
    pub(super) async fn run(
        &mut self,
        statements: &[&str],
    ) -> io::Result<Result<Vec<Vec<String>>, ServerFault>> {
        let mut frames = BytesMut::new();
        for statement in statements {
            frontend::query(statement, &mut frames)?;
        }
        self.send(&frames, statements.len()).await?;
        let (mut rows, mut fault) = (Vec::new(), None);
        while !self.is_done() {
            match self.next().await? {
                Message::DataRow(row) => rows.push(texts(&row)?),
                Message::ErrorResponse(body) => {
                    fault.get_or_insert_with(|| ServerFault::read(body.fields()));
                }
                _ => {}
            }
        }
        Ok(fault.map_or(Ok(rows), Err))
    }

    /// Says good-bye, as far as that is possible without waiting.
    pub(super) async fn close(mut self) {
        let mut frames = BytesMut::new();
        frontend::terminate(&mut frames);
        let _ = tokio::time::timeout(CANCEL, self.send(&frames, 0)).await;
    }
}

fn texts(row: &postgres_protocol::message::backend::DataRowBody) -> io::Result<Vec<String>> {
    use fallible_iterator::FallibleIterator;
    let text = |range: Option<std::ops::Range<usize>>| {
        let bytes = range.and_then(|range| row.buffer().get(range)).unwrap_or_default();
        Ok(String::from_utf8_lossy(bytes).into_owned())
    };
    row.ranges().map(text).collect()
}

/// Asks the server to stop what a session runs. It answers nothing; the session hears of it.
pub(super) async fn cancel(login: &Login, key: (i32, i32)) {
    let mut frames = BytesMut::new();
    frontend::cancel_request(key.0, key.1, &mut frames);
    let send = async {
        let mut stream = Stream::open(login).await?;
        stream.write_all(&frames).await?;
        stream.flush().await?;
        // The server closes when it has passed the request on.
        let _ = stream.read(&mut [0u8; 1]).await?;
        io::Result::Ok(())
    };
    let sent = tokio::time::timeout(CANCEL, send).await;
    if !matches!(sent, Ok(Ok(()))) {
        tracing::debug!("a cancel request could not be delivered to a database");
    }
}
