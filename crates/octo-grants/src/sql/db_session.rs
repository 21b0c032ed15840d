//! One database session: sends frames, receives messages and tracks its state.

use super::db_stream::Stream;
use super::dsn::Login;
use super::server_error::ServerError;
use bytes::BytesMut;
use postgres_protocol::message::backend::{Header, Message};
use postgres_protocol::message::frontend;
use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes per read.
const READ_CHUNK_BYTES: usize = 64 << 10;
/// Timeout for delivering a cancel request.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Transaction state, as the server reports it after each exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionState {
    Idle,
    InTransaction,
    Failed,
}

/// An authenticated connection.
pub struct Session {
    stream: Stream,
    receive_buffer: BytesMut,
    /// Outstanding replies.
    pending_replies: usize,
    transaction_state: TransactionState,
    /// Maximum length of a message.
    max_message_bytes: usize,
    pub(super) cancel_key: Option<(i32, i32)>,
    pub(super) opened_at: Instant,
}

impl Session {
    pub(super) fn new(stream: Stream, longest: usize) -> Self {
        Self {
            stream,
            receive_buffer: BytesMut::with_capacity(READ_CHUNK_BYTES),
            pending_replies: 0,
            transaction_state: TransactionState::Idle,
            max_message_bytes: longest,
            cancel_key: None,
            opened_at: Instant::now(),
        }
    }

    /// Sends messages to which the server will reply with `answers` times `ReadyForQuery`.
    pub async fn send(&mut self, frames: &[u8], answers: usize) -> io::Result<()> {
        self.pending_replies += answers;
        self.stream.write_all(frames).await?;
        self.stream.flush().await
    }

    /// The next message. A message above the limit is an error, after which the session is unusable.
    pub async fn next(&mut self) -> io::Result<Message> {
        loop {
            if let Some(header) = Header::parse(&self.receive_buffer)?
                && usize::try_from(header.len()).unwrap_or(usize::MAX) > self.max_message_bytes
            {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "message too long"));
            }
            if let Some(message) = Message::parse(&mut self.receive_buffer)? {
                if let Message::ReadyForQuery(body) = &message {
                    self.pending_replies = self.pending_replies.saturating_sub(1);
                    self.transaction_state = match body.status() {
                        b'I' => TransactionState::Idle,
                        b'T' => TransactionState::InTransaction,
                        _ => TransactionState::Failed,
                    };
                }
                return Ok(message);
            }
            self.receive_buffer.reserve(READ_CHUNK_BYTES);
            if self.stream.read_buf(&mut self.receive_buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Whether all replies have arrived.
    pub fn is_done(&self) -> bool {
        self.pending_replies == 0
    }

    pub fn transaction_state(&self) -> TransactionState {
        self.transaction_state
    }

    pub(super) fn is_usable(&self) -> bool {
        self.is_done() && self.receive_buffer.is_empty() && self.stream.is_idle()
    }

    /// Runs our own statements, each separately, and returns the fields of all rows.
    pub(super) async fn run(
        &mut self,
        statements: &[&str],
    ) -> io::Result<Result<Vec<Vec<String>>, ServerError>> {
        let mut frames = BytesMut::new();
        for statement in statements {
            frontend::query(statement, &mut frames)?;
        }
        self.send(&frames, statements.len()).await?;
        let (mut rows, mut fault) = (Vec::new(), None);
        while !self.is_done() {
            match self.next().await? {
                Message::DataRow(row) => rows.push(row_texts(&row)?),
                Message::ErrorResponse(body) => {
                    fault.get_or_insert_with(|| ServerError::parse(body.fields()));
                }
                _ => {}
            }
        }
        Ok(fault.map_or(Ok(rows), Err))
    }

    /// Sends Terminate, if that is possible without waiting.
    pub(super) async fn close(mut self) {
        let mut frames = BytesMut::new();
        frontend::terminate(&mut frames);
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, self.send(&frames, 0)).await;
    }
}

fn row_texts(row: &postgres_protocol::message::backend::DataRowBody) -> io::Result<Vec<String>> {
    use fallible_iterator::FallibleIterator;
    let text = |range: Option<std::ops::Range<usize>>| {
        let bytes = range.and_then(|range| row.buffer().get(range)).unwrap_or_default();
        Ok(String::from_utf8_lossy(bytes).into_owned())
    };
    row.ranges().map(text).collect()
}

/// Requests cancellation of what a session runs. The server does not reply; the session gets the error.
pub(super) async fn cancel(login: &Login, key: (i32, i32)) {
    let mut frames = BytesMut::new();
    frontend::cancel_request(key.0, key.1, &mut frames);
    let send = async {
        let mut stream = Stream::open(login).await?;
        stream.write_all(&frames).await?;
        stream.flush().await?;
        // The server closes the connection after it has passed the request on.
        let _ = stream.read(&mut [0u8; 1]).await?;
        io::Result::Ok(())
    };
    let sent = tokio::time::timeout(CANCEL_TIMEOUT, send).await;
    if !matches!(sent, Ok(Ok(()))) {
        tracing::debug!("could not deliver a cancel request to the database");
    }
}
