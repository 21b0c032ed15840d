//! Sessions of MCP clients that any process of a backend may continue: what a client has set, and the events of its
//! streams.

use crate::StoreResult;
use octo_model::BoxFuture;
use std::sync::Arc;

/// A session, which belongs to a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKey {
    pub tenant: String,
    pub id: u128,
}

/// What a client has set in its session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionRecord {
    pub log_level: Option<String>,
    /// URIs of resources.
    pub subscriptions: Vec<String>,
    pub has_ended: bool,
}

/// A change of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChange {
    LogLevel(String),
    Subscribe(String),
    Unsubscribe(String),
    End,
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    pub sequence: u64,
    pub text: Vec<u8>,
    /// May be dropped if the client does not read.
    pub is_droppable: bool,
}

/// A question that the last event asks the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamQuestion {
    pub number: u64,
    /// The call that waits for the answer, if another process could continue it.
    pub call: Option<String>,
}

/// Events to be added to a stream, which is created by the first of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamAppend {
    pub number: u64,
    /// The process that writes the stream: the name of a lease that it holds.
    pub owner: String,
    /// Id of the request that the stream answers, as JSON.
    pub request: String,
    /// Sequence numbers of the first event, and of the one after the last. Some in between may be missing.
    pub first: u64,
    pub next: u64,
    pub events: Vec<StreamEvent>,
    /// Droppable events before this one are dropped.
    pub dropped_before: u64,
    pub question: Option<StreamQuestion>,
    pub is_finished: bool,
}

/// A part of a stream, from some event on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamPart {
    pub events: Vec<StreamEvent>,
    /// Whether more events were already written than these.
    pub has_more: bool,
    pub is_finished: bool,
    /// Whether nobody writes the stream any more, and no answer of the client can continue it.
    pub is_orphaned: bool,
}

/// A stream that another process continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedStream {
    pub number: u64,
    pub request: String,
    /// Sequence number of the next event.
    pub next: u64,
    /// The call that waited for an answer.
    pub call: Option<String>,
}

/// Maximum events in one part of a stream.
pub const MAX_PART_EVENTS: usize = 64;

/// Sessions among all processes that share a backend. A process that writes streams holds a lease, whose name is the
/// owner; its streams are orphaned once the lease has ended.
pub trait SessionStore: Send + Sync {
    /// `None` if the client has set nothing.
    fn get<'a>(&'a self, session: &'a SessionKey) -> BoxFuture<'a, StoreResult<Option<SessionRecord>>>;

    fn change<'a>(&'a self, session: &'a SessionKey, change: SessionChange)
    -> BoxFuture<'a, StoreResult<()>>;

    /// Adds events. `false` if another process owns the stream. Events that are already stored are not added again.
    fn append<'a>(
        &'a self,
        session: &'a SessionKey,
        append: StreamAppend,
    ) -> BoxFuture<'a, StoreResult<bool>>;

    /// Events of a stream from a sequence number on; `None` if it does not exist any more.
    fn read<'a>(
        &'a self,
        session: &'a SessionKey,
        number: u64,
        from: u64,
    ) -> BoxFuture<'a, StoreResult<Option<StreamPart>>>;

    /// Takes a question with a call that waits for its answer, and its stream: once, by its owner, or by another process
    /// once the owner's lease has ended.
    fn take_question<'a>(
        &'a self,
        session: &'a SessionKey,
        question: u64,
        owner: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<AdoptedStream>>>;

    /// Whether a stream of this owner still asks a question.
    fn is_asked<'a>(
        &'a self,
        session: &'a SessionKey,
        question: u64,
        owner: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>>;

    /// Whether the session has a stream that is not finished.
    fn has_open_stream<'a>(&'a self, session: &'a SessionKey) -> BoxFuture<'a, StoreResult<bool>>;

    /// Takes an orphaned stream.
    fn adopt<'a>(
        &'a self,
        session: &'a SessionKey,
        number: u64,
        owner: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<AdoptedStream>>>;
}

/// Handle to the store of sessions.
pub type Sessions = Arc<dyn SessionStore>;
