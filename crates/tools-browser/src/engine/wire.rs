//! The DevTools protocol over a pair of pipes: JSON messages, each ended by a NUL, for many sessions at once.

use super::tab::Gone;
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

/// A picture of a long page is some megabytes; nothing honest is larger than this, and what is larger is not kept.
const LARGEST: usize = 64 << 20;

/// Kept of a message that is too large, to know whose answer it is.
const HEAD: usize = 64;

/// Messages that wait to be written.
const QUEUE: usize = 4_096;

/// How long the browser may take for what needs no waiting.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

type Answer = Result<Box<RawValue>, Refused>;

/// Why a command has no answer.
enum Refused {
    Said(Fault),
    /// Whoever was asked is no more.
    Gone(Gone),
    TooLarge,
}

/// What the browser says against a command.
#[derive(Debug, Deserialize)]
struct Fault {
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
    error: Option<Fault>,
}

/// Something that happened in the browser.
pub(super) struct Event<'a> {
    pub method: &'a str,
    pub session: Option<&'a str>,
    pub params: &'a str,
}

impl Event<'_> {
    /// The parameters, unless they are not what was expected.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        match serde_json::from_str(self.params) {
            Ok(params) => Some(params),
            Err(error) => {
                tracing::debug!(method = self.method, %error, "an event of the browser was not understood");
                None
            }
        }
    }
}

pub(super) struct Wire {
    out: mpsc::Sender<Vec<u8>>,
    waiting: Mutex<Waiting>,
    next: AtomicU64,
    open: watch::Sender<bool>,
}

#[derive(Default)]
struct Waiting {
    answers: HashMap<u64, Asked>,
    /// Sessions whose renderer has crashed: they would take commands and never answer.
    crashed: HashMap<Arc<str>, Gone>,
}

struct Asked {
    session: Option<Arc<str>>,
    tell: oneshot::Sender<Answer>,
}

/// A command that was sent.
pub(super) struct Pending {
    method: String,
    answer: oneshot::Receiver<Answer>,
}

impl Wire {
    pub fn new(mut to: impl AsyncWrite + Unpin + Send + 'static) -> Arc<Self> {
        let (out, mut queue) = mpsc::channel::<Vec<u8>>(QUEUE);
        tokio::spawn(async move {
            while let Some(message) = queue.recv().await {
                if to.write_all(&message).await.is_err() {
                    return;
                }
            }
        });
        Arc::new(Self {
            out,
            waiting: Mutex::default(),
            next: AtomicU64::new(1),
            open: watch::Sender::new(true),
        })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Reads until the browser is gone.
    pub async fn read(&self, mut from: impl AsyncRead + Unpin, hear: impl Fn(Event<'_>)) {
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
                    true => self.skipped(buffer.get(begin..end).unwrap_or_default()),
                    false => self.take(buffer.get(begin..end).unwrap_or_default(), &hear),
                }
                begin = end + 1;
                searched = begin;
            }
            buffer.drain(..begin);
            skipping |= buffer.len() > LARGEST;
            if skipping {
                buffer.truncate(HEAD);
            }
            searched = buffer.len();
        }
        self.open.send_replace(false);
        self.waiting().answers.clear();
    }

    fn take(&self, message: &[u8], hear: &impl Fn(Event<'_>)) {
        let Ok(incoming) = serde_json::from_slice::<Incoming<'_>>(message) else {
            tracing::debug!("a message of the browser is no JSON");
            return;
        };
        if let Some(method) = &incoming.method {
            let params = incoming.params.map_or("{}", RawValue::get);
            return hear(Event { method, session: incoming.session.as_deref(), params });
        }
        let Some(id) = incoming.id else { return };
        self.answer(
            id,
            match (incoming.result, incoming.error) {
                (_, Some(fault)) => Err(Refused::Said(fault)),
                (Some(result), None) => Ok(result.to_owned()),
                (None, None) => Err(Refused::Said(Fault { message: "an empty answer".to_owned() })),
            },
        );
    }

    fn answer(&self, id: u64, answer: Answer) {
        let asked = self.waiting().answers.remove(&id);
        if let Some(Asked { tell, .. }) = asked {
            let _ = tell.send(answer);
        }
    }

    /// The end of a message that was too large to be kept; its head says whose answer it would have been.
    fn skipped(&self, head: &[u8]) {
        tracing::warn!("the browser sent a message that is too large; it was left out");
        let head = String::from_utf8_lossy(head);
        let digits = head.strip_prefix("{\"id\":").and_then(|rest| rest.split_once(','));
        if let Some(id) = digits.and_then(|(digits, _)| digits.parse().ok()) {
            self.answer(id, Err(Refused::TooLarge));
        }
    }

    /// A session is over, or its renderer has crashed: nothing that was asked there is answered any more.
    pub fn lose(&self, session: &str, why: Gone) {
        let mut waiting = self.waiting();
        match why {
            Gone::Crashed | Gone::FrameCrashed => drop(waiting.crashed.insert(session.into(), why)),
            _ => drop(waiting.crashed.remove(session)),
        }
        let lost = waiting.answers.extract_if(|_, asked| asked.session.as_deref() == Some(session));
        for (_, Asked { tell, .. }) in lost {
            let _ = tell.send(Err(Refused::Gone(why)));
        }
    }

    /// A session that had crashed has a renderer again.
    pub fn found(&self, session: &str) {
        self.waiting().crashed.remove(session);
    }

    pub fn is_open(&self) -> bool {
        *self.open.borrow()
    }

    /// Sends a command without waiting for its answer.
    pub async fn send(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Pending, ToolError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (tell, answer) = oneshot::channel();
        let bytes = encode(id, session, method, params)?;
        {
            // In this order: whoever closes the wire clears what waits after saying so.
            let mut waiting = self.waiting();
            if let Some(why) = session.and_then(|session| waiting.crashed.get(session)) {
                return Err(why.error());
            }
            waiting.answers.insert(id, Asked { session: session.map(Arc::from), tell });
        }
        if !self.is_open() || self.out.send(bytes).await.is_err() {
            self.waiting().answers.remove(&id);
            return Err(ended());
        }
        Ok(Pending { method: method.to_owned(), answer })
    }

    /// Sends a command whose answer nobody needs; for use while an event is handled.
    pub fn post(&self, session: Option<&str>, method: &str, params: Value) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        if let Ok(bytes) = encode(id, session, method, params) {
            let _ = self.out.try_send(bytes);
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

impl Pending {
    pub async fn get<T: DeserializeOwned>(self) -> Result<T, ToolError> {
        self.get_within(PATIENCE).await
    }

    pub async fn get_within<T: DeserializeOwned>(self, patience: Duration) -> Result<T, ToolError> {
        let Self { method, answer } = self;
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(Ok(result))) => serde_json::from_str(result.get())
                .map_err(|error| ToolError::internal(format!("{method}: an answer not understood: {error}"))),
            Ok(Ok(Err(Refused::Said(fault)))) => Err(explain(&method, &fault.message)),
            Ok(Ok(Err(Refused::Gone(why)))) => Err(why.error().detail(method)),
            Ok(Ok(Err(Refused::TooLarge))) => Err(too_large().detail(method)),
            Ok(Err(_)) => Err(ended()),
            Err(_) => Err(ToolError::new(Kind::Timeout, "The page does not react.")
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

fn too_large() -> ToolError {
    ToolError::new(Kind::TooLarge, "The page is too large to be read whole.")
        .hint("Ask for less: browser_find, a part of the snapshot, or one element.")
}

fn ended() -> ToolError {
    ToolError::unavailable("The browser has ended.").hint("Call again; a new one is started.")
}

/// Chromium's words for what can be said better.
fn explain(method: &str, message: &str) -> ToolError {
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
        ToolError::new(Kind::Conflict, "The page went elsewhere meanwhile.")
            .hint("Take a new snapshot and go on.")
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
        let wire = Wire::new(to);
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
        // A session that ends takes its questions with it; one that has crashed takes no more.
        let closing = wire.send(Some("T"), "C.c", json!({})).await.unwrap();
        let other = wire.send(Some("U"), "C.c", json!({})).await.unwrap();
        wire.lose("T", Gone::Closed);
        assert_eq!(closing.get::<Value>().await.unwrap_err().kind, Kind::NotFound);
        wire.lose("U", Gone::Crashed);
        assert_eq!(other.get::<Value>().await.unwrap_err().kind, Kind::Unavailable);
        assert_eq!(wire.send(Some("U"), "C.c", json!({})).await.err().unwrap().kind, Kind::Unavailable);
        wire.found("U");
        // An answer without end is left out, and whoever waited for it is told; what follows is heard.
        let large = wire.send(Some("U"), "C.c", json!({})).await.unwrap();
        let id = wire.next.load(Ordering::Relaxed) - 1;
        their_out.write_all(format!("{{\"id\":{id},\"result\":\"").as_bytes()).await.unwrap();
        let part = vec![b'x'; 1 << 20];
        for _ in 0..=LARGEST >> 20 {
            their_out.write_all(&part).await.unwrap();
        }
        their_out.write_all(b"\"}\0{\"method\":\"F.f\"}\0").await.unwrap();
        assert_eq!(large.get::<Value>().await.unwrap_err().kind, Kind::TooLarge);
        while heard.lock().unwrap().len() < 2 {
            tokio::task::yield_now().await;
        }
        assert!(wire.waiting().answers.is_empty());
        let lost = wire.send(None, "C.c", json!({})).await.unwrap();
        drop((their_in, their_out));
        assert_eq!(lost.get::<Value>().await.unwrap_err().kind, Kind::Unavailable);
        assert_eq!(wire.call::<Value>(None, "D.d", json!({})).await.unwrap_err().kind, Kind::Unavailable);
    }
}
