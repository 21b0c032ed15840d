//! DevTools protocol over a pair of pipes: NUL-terminated JSON messages, multiplexed over sessions.

use super::tab::LossReason;
use octo_toolkit::{Kind, ToolError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};

/// Maximum size of a message; larger ones are dropped. A screenshot of a long page has some megabytes.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// Bytes kept of an oversized message, to identify the command it replies to.
const OVERSIZED_HEAD_BYTES: usize = 64;

/// Maximum number of queued outgoing messages.
const MAX_QUEUED_WRITES: usize = 4_096;

/// Timeout of commands that do not wait for anything.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);

type CommandResult = Result<Box<RawValue>, CommandError>;

/// Why a command has no reply.
enum CommandError {
    Protocol(ProtocolError),
    /// The session is gone.
    SessionLost(LossReason),
    TooLarge,
}

/// Error reply of the browser.
#[derive(Debug, Deserialize)]
struct ProtocolError {
    message: String,
}

#[derive(Deserialize)]
struct Incoming<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "sessionId")]
    session: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ProtocolError>,
}

/// An event of the browser.
pub(super) struct Event<'a> {
    pub method: &'a str,
    pub session: Option<&'a str>,
    pub params: &'a str,
}

impl Event<'_> {
    /// The parameters; None if they have an unexpected form.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        match serde_json::from_str(self.params) {
            Ok(params) => Some(params),
            Err(error) => {
                tracing::debug!(method = self.method, %error, "cannot parse browser event");
                None
            }
        }
    }
}

pub(super) struct CdpConnection {
    outgoing: mpsc::Sender<Vec<u8>>,
    pending: Mutex<PendingCommands>,
    next_id: AtomicU64,
    open: watch::Sender<bool>,
}

#[derive(Default)]
struct PendingCommands {
    waiters: HashMap<u64, Waiter>,
    /// Sessions whose renderer has crashed: they accept commands and never reply.
    crashed_sessions: HashMap<Arc<str>, LossReason>,
}

struct Waiter {
    session: Option<Arc<str>>,
    reply_tx: oneshot::Sender<CommandResult>,
}

/// A command that was sent.
pub(super) struct PendingReply {
    method: String,
    answer: oneshot::Receiver<CommandResult>,
}

impl CdpConnection {
    pub fn new(mut to: impl AsyncWrite + Unpin + Send + 'static) -> Arc<Self> {
        let (out, mut queue) = mpsc::channel::<Vec<u8>>(MAX_QUEUED_WRITES);
        tokio::spawn(async move {
            while let Some(message) = queue.recv().await {
                if to.write_all(&message).await.is_err() {
                    return;
                }
            }
        });
        Arc::new(Self {
            outgoing: out,
            pending: Mutex::default(),
            next_id: AtomicU64::new(1),
            open: watch::Sender::new(true),
        })
    }

    fn pending(&self) -> MutexGuard<'_, PendingCommands> {
        self.pending.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Reads messages until the browser exits.
    pub async fn read(&self, mut from: impl AsyncRead + Unpin, on_event: impl Fn(Event<'_>)) {
        let mut buffer: Vec<u8> = Vec::with_capacity(64 << 10);
        let mut searched = 0;
        let mut skipping = false;
        while let Ok(1..) = from.read_buf(&mut buffer).await {
            let mut begin = 0;
            while let Some(length) =
                buffer.get(searched..).and_then(|rest| rest.iter().position(|byte| *byte == 0))
            {
                let end = searched + length;
                match std::mem::take(&mut skipping) {
                    true => self.skip_oversized(buffer.get(begin..end).unwrap_or_default()),
                    false => self.dispatch(buffer.get(begin..end).unwrap_or_default(), &on_event),
                }
                begin = end + 1;
                searched = begin;
            }
            buffer.drain(..begin);
            skipping |= buffer.len() > MAX_MESSAGE_BYTES;
            if skipping {
                buffer.truncate(OVERSIZED_HEAD_BYTES);
            }
            searched = buffer.len();
        }
        self.open.send_replace(false);
        self.pending().waiters.clear();
    }

    fn dispatch(&self, message: &[u8], on_event: &impl Fn(Event<'_>)) {
        let Ok(incoming) = serde_json::from_slice::<Incoming<'_>>(message) else {
            tracing::debug!("browser message is not JSON");
            return;
        };
        if let Some(method) = &incoming.method {
            let params = incoming.params.map_or("{}", RawValue::get);
            return on_event(Event { method, session: incoming.session.as_deref(), params });
        }
        let Some(id) = incoming.id else { return };
        self.complete(
            id,
            match (incoming.result, incoming.error) {
                (_, Some(fault)) => Err(CommandError::Protocol(fault)),
                (Some(result), None) => Ok(result.to_owned()),
                (None, None) => {
                    Err(CommandError::Protocol(ProtocolError { message: "empty reply".to_owned() }))
                }
            },
        );
    }

    fn complete(&self, id: u64, answer: CommandResult) {
        let asked = self.pending().waiters.remove(&id);
        if let Some(Waiter { reply_tx: tell, .. }) = asked {
            let _ = tell.send(answer);
        }
    }

    /// Handles the end of an oversized message; its head identifies the command it replies to.
    fn skip_oversized(&self, head: &[u8]) {
        tracing::warn!("dropped an oversized message of the browser");
        let head = String::from_utf8_lossy(head);
        let digits = head.strip_prefix("{\"id\":").and_then(|rest| rest.split_once(','));
        if let Some(id) = digits.and_then(|(digits, _)| digits.parse().ok()) {
            self.complete(id, Err(CommandError::TooLarge));
        }
    }

    /// Fails all pending commands of a session that is closed or whose renderer has crashed.
    pub fn fail_session(&self, session: &str, why: LossReason) {
        let mut waiting = self.pending();
        match why {
            LossReason::Crashed | LossReason::FrameCrashed => {
                waiting.crashed_sessions.insert(session.into(), why);
            }
            _ => {
                waiting.crashed_sessions.remove(session);
            }
        }
        let lost = waiting.waiters.extract_if(|_, asked| asked.session.as_deref() == Some(session));
        for (_, Waiter { reply_tx: tell, .. }) in lost {
            let _ = tell.send(Err(CommandError::SessionLost(why)));
        }
    }

    /// Marks a crashed session as usable: it has a renderer again.
    pub fn restore_session(&self, session: &str) {
        self.pending().crashed_sessions.remove(session);
    }

    pub fn is_open(&self) -> bool {
        *self.open.borrow()
    }

    /// Sends a command without waiting for its reply.
    pub async fn send(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<PendingReply, ToolError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (tell, answer) = oneshot::channel();
        let bytes = encode(id, session, method, params)?;
        {
            // In this order: closing the connection sets the flag first and then clears the pending commands.
            let mut waiting = self.pending();
            if let Some(why) = session.and_then(|session| waiting.crashed_sessions.get(session)) {
                return Err(why.error());
            }
            waiting.waiters.insert(id, Waiter { session: session.map(Arc::from), reply_tx: tell });
        }
        if !self.is_open() || self.outgoing.send(bytes).await.is_err() {
            self.pending().waiters.remove(&id);
            return Err(browser_exited_error());
        }
        Ok(PendingReply { method: method.to_owned(), answer })
    }

    /// Sends a command whose reply is not needed; for use in event handlers.
    pub fn post(&self, session: Option<&str>, method: &str, params: Value) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        if let Ok(bytes) = encode(id, session, method, params) {
            let _ = self.outgoing.try_send(bytes);
        }
    }

    pub async fn call<T: DeserializeOwned>(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<T, ToolError> {
        self.send(session, method, params).await?.get().await
    }
}

impl PendingReply {
    pub async fn get<T: DeserializeOwned>(self) -> Result<T, ToolError> {
        self.get_with_timeout(COMMAND_TIMEOUT).await
    }

    pub async fn get_with_timeout<T: DeserializeOwned>(self, timeout: Duration) -> Result<T, ToolError> {
        let Self { method, answer } = self;
        match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(Ok(result))) => serde_json::from_str(result.get())
                .map_err(|error| ToolError::internal(format!("{method}: cannot parse the reply: {error}"))),
            Ok(Ok(Err(CommandError::Protocol(fault)))) => Err(map_protocol_error(&method, &fault.message)),
            Ok(Ok(Err(CommandError::SessionLost(why)))) => Err(why.error().detail(method)),
            Ok(Ok(Err(CommandError::TooLarge))) => Err(message_too_large_error().detail(method)),
            Ok(Err(_)) => Err(browser_exited_error()),
            Err(_) => Err(ToolError::new(Kind::Timeout, "The page does not respond.")
                .hint("It may be busy; wait and try again, or open it in a new tab.")
                .detail(method)),
        }
    }
}

fn encode(id: u64, session: Option<&str>, method: &str, params: Value) -> Result<Vec<u8>, ToolError> {
    let mut message = json!({"id": id, "method": method, "params": params});
    if let (Some(session), Value::Object(members)) = (session, &mut message) {
        members.insert("sessionId".to_owned(), session.into());
    }
    let mut bytes = serde_json::to_vec(&message).map_err(ToolError::internal)?;
    bytes.push(0);
    Ok(bytes)
}

fn message_too_large_error() -> ToolError {
    ToolError::new(Kind::TooLarge, "The page is too large to read completely.")
        .hint("Request less: browser_find, a part of the snapshot, or one element.")
}

fn browser_exited_error() -> ToolError {
    ToolError::unavailable("The browser has exited.").hint("Call again to start a new one.")
}

/// Maps Chromium's error messages to better ones.
fn map_protocol_error(method: &str, message: &str) -> ToolError {
    let has = |part: &str| message.contains(part);
    let error = if has("node with given id")
        || has("No node")
        || has("detached")
        || has("does not belong to the document")
    {
        ToolError::not_found("The element is no longer on the page.")
            .hint("Take a new snapshot and use its refs.")
    } else if has("Session with given id")
        || has("No target with given id")
        || has("Not attached")
        || has("closed")
    {
        ToolError::not_found("The tab is closed.").hint("List the tabs, or navigate again.")
    } else if has("context was destroyed") || has("Cannot find context") || has("navigated or closed") {
        ToolError::new(Kind::Conflict, "The page navigated away meanwhile.")
            .hint("Take a new snapshot and continue.")
    } else {
        return ToolError::internal(format!("{method}: {message}"));
    };
    error.detail(format!("{method}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_find_their_commands_and_events_their_hearer() {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (from, to) = tokio::io::split(ours);
        let wire = CdpConnection::new(to);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (reading, hearing) = (Arc::clone(&wire), Arc::clone(&heard));
        tokio::spawn(async move {
            reading.read(from, |event| hearing.lock().unwrap().push(event.method.to_owned())).await;
        });
        let (mut their_in, mut their_out) = tokio::io::split(theirs);
        let first = wire.send(None, "A.a", json!({})).await.unwrap();
        let second = wire.send(Some("S"), "B.b", json!({"x": 1})).await.unwrap();
        let mut said = vec![0; 4096];
        let mut length = 0;
        while said[..length].iter().filter(|byte| **byte == 0).count() < 2 {
            length += their_in.read(&mut said[length..]).await.unwrap();
        }
        let text = String::from_utf8_lossy(&said[..length]).into_owned();
        assert!(text.contains(r#""sessionId":"S""#), "{text}");
        let answers = "{\"method\":\"E.e\",\"params\":{}}\0{\"id\":2,\"result\":{\"y\":2}}\0{\"id\":1,\"error\":{\"message\":\"No node here\"}}\0";
        for part in answers.as_bytes().chunks(7) {
            their_out.write_all(part).await.unwrap();
        }
        assert_eq!(second.get::<Value>().await.unwrap(), json!({"y": 2}));
        assert_eq!(first.get::<Value>().await.unwrap_err().kind, Kind::NotFound);
        assert_eq!(*heard.lock().unwrap(), ["E.e"]);
        // A session that ends fails its pending commands; a crashed one accepts no more.
        let closing = wire.send(Some("T"), "C.c", json!({})).await.unwrap();
        let other = wire.send(Some("U"), "C.c", json!({})).await.unwrap();
        wire.fail_session("T", LossReason::Closed);
        assert_eq!(closing.get::<Value>().await.unwrap_err().kind, Kind::NotFound);
        wire.fail_session("U", LossReason::Crashed);
        assert_eq!(other.get::<Value>().await.unwrap_err().kind, Kind::Unavailable);
        assert_eq!(wire.send(Some("U"), "C.c", json!({})).await.err().unwrap().kind, Kind::Unavailable);
        wire.restore_session("U");
        // An oversized reply is dropped and its command fails; the next message is received.
        let large = wire.send(Some("U"), "C.c", json!({})).await.unwrap();
        let id = wire.next_id.load(Ordering::Relaxed) - 1;
        their_out.write_all(format!("{{\"id\":{id},\"result\":\"").as_bytes()).await.unwrap();
        let part = vec![b'x'; 1 << 20];
        for _ in 0..=MAX_MESSAGE_BYTES >> 20 {
            their_out.write_all(&part).await.unwrap();
        }
        their_out.write_all(b"\"}\0{\"method\":\"F.f\"}\0").await.unwrap();
        assert_eq!(large.get::<Value>().await.unwrap_err().kind, Kind::TooLarge);
        while heard.lock().unwrap().len() < 2 {
            tokio::task::yield_now().await;
        }
        assert!(wire.pending().waiters.is_empty());
        let lost = wire.send(None, "C.c", json!({})).await.unwrap();
        drop((their_in, their_out));
        assert_eq!(lost.get::<Value>().await.unwrap_err().kind, Kind::Unavailable);
        assert_eq!(wire.call::<Value>(None, "D.d", json!({})).await.unwrap_err().kind, Kind::Unavailable);
    }
}
