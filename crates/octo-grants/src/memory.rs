//! What callers want remembered: entities, what is known of them, and how they are tied to each other.
//!
//! A memory belongs to one subject within its tenant. Nobody else can read, search or guess it; whoever uses the
//! machine itself is the subject `local`. Which engine keeps it is not known here.

use crate::{Capabilities, Grant};
use jiff::Timestamp;
use octo_model::{CallId, Caller, Principal, ToolError};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

/// Longest name of an entity, in bytes.
pub const MAX_NAME_BYTES: usize = 512;
/// Longest type and longest relation, in bytes.
pub const MAX_KIND_BYTES: usize = 128;
/// Longest observation, in bytes.
pub const MAX_FACT_BYTES: usize = 16 << 10;
/// Longest word about where something comes from, in bytes.
pub const MAX_SOURCE_BYTES: usize = 2_048;
/// Most entities or relations of one call.
pub const MAX_ITEMS: usize = 1_000;
/// Most observations that are true of one entity at a time.
pub const MAX_FACTS: usize = 2_000;

/// The type of an entity that nobody has given one.
pub const DEFAULT_KIND: &str = "entity";

/// Whose memory it is, and by which call it is used.
#[derive(Debug, Clone)]
pub struct MemoryCaller {
    pub principal: Principal,
    pub call: CallId,
}

impl MemoryCaller {
    pub fn new(caller: &Caller, call: CallId) -> Self {
        Self { principal: caller.principal.clone(), call }
    }
}

/// How far an observation can be trusted: what the caller says is its own, the rest came from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactOrigin {
    /// The caller said so and named no source.
    Stated,
    /// The caller named where it has it from.
    Sourced,
    /// Read from a file.
    Imported,
}

impl FactOrigin {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stated => "stated",
            Self::Sourced => "sourced",
            Self::Imported => "imported",
        }
    }
}

/// An observation to remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub text: String,
    pub origin: FactOrigin,
    pub source: Option<String>,
}

/// An entity to create or to add to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntity {
    pub name: String,
    /// Without one a known entity keeps its type.
    pub kind: Option<String>,
    pub facts: Vec<Fact>,
}

/// Which known entity a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameMatch {
    /// Letter by letter.
    Exact,
    /// Letter by letter, or else the only one that differs in capitals and spaces alone.
    Alike,
}

/// What became of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpsertResult {
    /// The name it is known under.
    pub name: String,
    pub created: bool,
    /// Observations that were new.
    pub added: u64,
    /// The type it had before, where that has changed.
    pub kind_was: Option<String>,
}

/// A typed relation from one entity to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Link {
    pub source: String,
    pub relation: String,
    pub target: String,
}

/// What became of relations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkResult {
    pub added: u64,
    /// Known already.
    pub skipped: u64,
    /// Entities that did not exist and were made.
    pub created: Vec<String>,
}

/// What is asked of a memory. Everything given must be true of an answer.
#[derive(Debug, Clone, Default)]
pub struct MemoryQuery {
    /// Words to find, best matches first.
    pub text: Option<String>,
    pub name: Option<String>,
    pub kind: Option<String>,
    /// With the relations of each entity.
    pub links: bool,
    /// What was believed then, instead of now.
    pub at: Option<Timestamp>,
    /// Without observations that came from elsewhere.
    pub stated_only: bool,
    pub limit: usize,
    /// Most observations of each entity.
    pub facts: usize,
}

#[derive(Debug, Clone)]
pub struct QueryResult {
    pub entities: Vec<KnownEntity>,
    pub total: u64,
    /// False when `total` counts only what was looked at.
    pub exact: bool,
    /// Names to try when nothing has the name that was asked for.
    pub nearest: Vec<String>,
}

/// Nothing is known, and that is certain.
impl Default for QueryResult {
    fn default() -> Self {
        Self { entities: Vec::new(), total: 0, exact: true, nearest: Vec::new() }
    }
}

/// An entity and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownEntity {
    pub name: String,
    pub kind: String,
    /// Oldest first.
    pub facts: Vec<KnownFact>,
    /// How many there are, of which some may be left out.
    pub fact_count: u64,
    pub links: Vec<EntityRelation>,
    pub links_left_out: bool,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// How well it fits the words, where words were asked for.
    pub score: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFact {
    pub text: String,
    pub origin: FactOrigin,
    pub source: Option<String>,
    pub since: Timestamp,
    /// The call that brought it.
    pub call: String,
}

/// A relation as one of its ends sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityRelation {
    pub relation: String,
    pub other: String,
    pub outward: bool,
}

/// A part of the list of all entities, by name.
#[derive(Debug, Clone, Default)]
pub struct PageRequest {
    pub kind: Option<String>,
    pub limit: usize,
    pub offset: u64,
}

#[derive(Debug, Clone, Default)]
pub struct EntityPage {
    pub entities: Vec<EntitySummary>,
    pub total: u64,
    /// Types and how many entities have each, the most frequent first.
    pub kinds: Vec<(String, u64)>,
}

#[derive(Debug, Clone)]
pub struct EntitySummary {
    pub name: String,
    pub kind: String,
    pub fact_count: u64,
    pub updated: Timestamp,
}

/// What happens to what is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is no longer so, but was: a question about the past still finds it.
    Ended,
    /// No trace stays, neither in the past nor in the index.
    Erased,
}

/// One thing to take away.
#[derive(Debug, Clone)]
pub enum ForgetTarget {
    Fact { entity: String, text: String },
    Link(Link),
}

/// A part of everything, in the order of creation.
#[derive(Debug, Clone, Default)]
pub struct Dump {
    /// With all observations, and the relations that begin here.
    pub entities: Vec<KnownEntity>,
    /// Where to go on.
    pub next: Option<i64>,
}

/// An answer on its way.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// What keeps memories. A change is answered when it is durable and can be found.
pub trait MemoryStore: Send + Sync {
    fn upsert(
        &self,
        asker: MemoryCaller,
        entities: Vec<NewEntity>,
        names: NameMatch,
    ) -> StoreFuture<'_, Vec<UpsertResult>>;
    /// Entities that do not exist are made.
    fn link(&self, asker: MemoryCaller, links: Vec<Link>, names: NameMatch) -> StoreFuture<'_, LinkResult>;
    fn query(&self, asker: MemoryCaller, question: MemoryQuery) -> StoreFuture<'_, QueryResult>;
    fn list(&self, asker: MemoryCaller, page: PageRequest) -> StoreFuture<'_, EntityPage>;
    /// Takes entities away with their observations and relations, and gives the names of those that were there.
    fn delete(
        &self,
        asker: MemoryCaller,
        names: Vec<String>,
        removal: Removal,
    ) -> StoreFuture<'_, Vec<String>>;
    /// How many were taken away: none when there is no such thing.
    fn forget(&self, asker: MemoryCaller, what: ForgetTarget, removal: Removal) -> StoreFuture<'_, u64>;
    fn dump(&self, asker: MemoryCaller, after: i64, limit: usize) -> StoreFuture<'_, Dump>;
}

/// The caller's memory.
#[derive(Clone)]
pub struct Memory(Arc<dyn MemoryStore>);

impl Memory {
    pub fn new(remembers: Arc<dyn MemoryStore>) -> Self {
        Self(remembers)
    }
}

impl Deref for Memory {
    type Target = dyn MemoryStore;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Grant for Memory {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}
