//! A server with which a revision has been agreed on.

use crate::calls::{Behalf, Entry};
use crate::child::Process;
use crate::fail::{Fail, Outcome};
use crate::handshake::{self, Plan, Server};
use crate::heard::Heard;
use crate::http::Endpoint;
use crate::inbox::Inbox;
use crate::lost::Lost;
use crate::meta;
use crate::mirror::{self, Mirror};
use crate::spec::Link;
use crate::state::Inner;
use crate::wire::{Request, Wire};
use arc_swap::ArcSwap;
use octo_grants::{Child, Command};
use octo_model::JsonObject;
use octo_toolkit::{NoPeer, Peer};
use octo_wire::Era;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(3);
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The mirrored arguments of each tool that has any.
pub(crate) type Mirrors = HashMap<String, Vec<Mirror>>;

pub(crate) struct Connection {
    pub(crate) server: Server,
    pub(crate) lost: Lost,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) mirrors: ArcSwap<Mirrors>,
    /// Among those that can list; later ones have larger numbers.
    pub(crate) number: u64,
    wire: Wire,
    heard: Heard,
    process: Mutex<Option<Process>>,
}

/// A request as the rest of the crate writes it.
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: JsonObject,
    /// The client for whom it is asked; nobody for requests of our own.
    pub(crate) peer: Option<&'a Arc<dyn Peer>>,
    /// Told when a subscription has been acknowledged.
    pub(crate) opened: Option<oneshot::Sender<()>>,
}

impl<'a> Ask<'a> {
    pub(crate) fn ours(method: &'a str, params: JsonObject) -> Self {
        Self { method, params, peer: None, opened: None }
    }
}

impl Connection {
    /// Reaches the server and agrees on a revision with it.
    pub(crate) async fn open(inner: &Inner, plan: Plan) -> Outcome<Self> {
        let (inbox, lost) = (Arc::new(inner.inbox()), Lost::default());
        let limit = inner.spec.max_message;
        let (wire, process) = match &inner.spec.link {
            Link::Child(command) => {
                let command = inner.dressed(command).await?;
                inner.said.begin(&command.env);
                let child = start(inner, &command).await?;
                let (wire, process) = Process::attend(child, limit, &inbox, &lost, &inner.said);
                (wire, Some(process))
            }
            Link::Http { url, headers } => {
                let endpoint = Endpoint::new(inner.client(url)?, url, headers, limit)?;
                (Wire::Http(Arc::new(endpoint.with_account(inner.account.clone()))), None)
            }
        };
        let server = match handshake::shake(&wire, &inbox, plan).await {
            Ok(server) => server,
            Err(Fail::NotSent(why)) if process.is_some() => {
                return Err(Fail::NotSent(last_words(&lost, why).await));
            }
            Err(why) => return Err(why),
        };
        Ok(Self {
            server,
            lost,
            inbox,
            mirrors: ArcSwap::default(),
            // Who speaks without a login gives way to everybody.
            number: if inner.is_bare() { 0 } else { inner.listers.number() },
            wire,
            heard: Heard::default(),
            process: Mutex::new(process),
        })
    }

    pub(crate) fn era(&self) -> Era {
        self.server.era
    }

    pub(crate) fn http(&self) -> Option<&Arc<Endpoint>> {
        match &self.wire {
            Wire::Http(endpoint) => Some(endpoint),
            Wire::Child(_) => None,
        }
    }

    /// The program, while it has not been ended.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(|process| process.pid)
    }

    /// Asks and waits. Who stops waiting cancels the request, and only that one.
    pub(crate) async fn ask(&self, ask: Ask<'_>) -> Outcome {
        let id = self.inbox.calls.mint();
        let capabilities = ask.peer.map_or_else(|| NoPeer.capabilities(), |peer| peer.capabilities());
        let mirrored = self.mirrored(&ask);
        let (params, token) = meta::dress(ask.params, id, self.server.era, capabilities);
        let behalf = ask.peer.map(|peer| Behalf { peer: peer.clone(), token });
        self.inbox.calls.enter(id, Entry::new(behalf, ask.opened));
        let mut under_way = UnderWay { connection: self, id, answered: false };
        let request = Request { id, method: ask.method.to_owned(), params, era: self.server.era, mirrored };
        let outcome = self.wire.exchange(&self.inbox, request).await;
        // Whoever gives up on an answer that may still come cancels as well.
        under_way.answered = !matches!(outcome, Err(Fail::Lost(_) | Fail::TooLarge(_)));
        outcome
    }

    /// A legacy server says as much as the client that wants to hear most; each face leaves out the rest.
    pub(crate) async fn speak_up(&self, params: &JsonObject) {
        if self.server.era == Era::Modern || self.server.capabilities.get("logging").is_none() {
            return;
        }
        if let Some(level) = self.heard.more_for(params) {
            let params = JsonObject::new().with("level", level.as_str());
            let _ = self.ask_within(FAREWELL, "logging/setLevel", params).await;
        }
    }

    fn mirrored(&self, ask: &Ask<'_>) -> Vec<(http::HeaderName, http::HeaderValue)> {
        let mirrors = self.mirrors.load();
        if mirrors.is_empty() || ask.method != "tools/call" {
            return Vec::new();
        }
        let tool = ask.params.text("name").and_then(|name| mirrors.get(&name));
        tool.map(|tool| mirror::headers(tool, ask.params.get("arguments"))).unwrap_or_default()
    }

    /// Asks for something of our own that does no harm twice, within a time.
    pub(crate) async fn ask_within(&self, limit: Duration, method: &str, params: JsonObject) -> Outcome {
        let asked = async {
            match self.ask(Ask::ours(method, params.clone())).await {
                Err(Fail::Reset(_)) => self.ask(Ask::ours(method, params)).await,
                outcome => outcome,
            }
        };
        tokio::time::timeout(limit, asked).await.unwrap_or(Err(Fail::Timeout(limit)))
    }

    /// Ends a connection that still works: the session first, then the process.
    pub(crate) async fn close(&self) {
        if let Some(endpoint) = self.http() {
            let _ = tokio::time::timeout(FAREWELL, endpoint.close()).await;
        }
        self.lost.set(Fail::Lost("the connection was closed".to_owned()));
        self.bury().await;
    }

    /// Ends what is left of a connection that broke.
    pub(crate) async fn bury(&self) {
        self.inbox.calls.close(self.lost.wait().await);
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(process) = process {
            process.close().await;
        }
    }
}

/// Starts the program: in its sandbox, through the launcher, or by itself.
async fn start(inner: &Inner, command: &Command) -> Outcome<Child> {
    let spec = &inner.spec;
    match &spec.cage {
        Some(cage) => cage.exec.serve(command, cage.network).await.map_err(|error| {
            let why = error.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
            Fail::NotSent(format!("{}: {}{why}", command.program, error.message))
        }),
        None => {
            let started =
                if spec.launcher.is_empty() { command.spawn() } else { command.launch(&spec.launcher).await };
            started.map_err(|error| Fail::NotSent(format!("{}: {error}", command.program)))
        }
    }
}

/// Why a program ended that did not even read what it was sent.
async fn last_words(lost: &Lost, otherwise: String) -> String {
    match tokio::time::timeout(LAST_WORDS, lost.wait()).await {
        Ok(Fail::Lost(why)) => why,
        _ => otherwise,
    }
}

/// A request that waits for its answer; dropped before that, it is cancelled at the server.
struct UnderWay<'a> {
    connection: &'a Connection,
    id: u64,
    answered: bool,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.connection.inbox.calls.leave(self.id);
        if !self.answered && !self.connection.lost.is_set() {
            self.connection.wire.cancel(self.id, self.connection.server.era);
        }
    }
}
