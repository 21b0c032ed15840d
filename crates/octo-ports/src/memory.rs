//! Memory of callers: entities, their observations and their relations.
//!
//! A memory belongs to one subject within its tenant. No other caller can read or search it; the user of the
//! machine itself is the subject `local`. The backend is not known here.

pub mod backend;

use crate::StoreResult;
use jiff::Timestamp;
use octo_model::{BoxFuture, CallId, Caller, Principal};
use std::sync::Arc;

/// Maximum bytes of an entity's name.
pub const MAX_NAME_BYTES: usize = 512;
/// Maximum bytes of a type and of a relation.
pub const MAX_KIND_BYTES: usize = 128;
/// Maximum bytes of an observation.
pub const MAX_FACT_BYTES: usize = 16 << 10;
/// Maximum bytes of a source.
pub const MAX_SOURCE_BYTES: usize = 2_048;
/// Maximum entities or relations per call.
pub const MAX_ITEMS: usize = 1_000;
/// Maximum current observations per entity.
pub const MAX_FACTS: usize = 2_000;

/// Type of an entity without a given one.
pub const DEFAULT_KIND: &str = "entity";

/// The owner of the memory, and the call that uses it.
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

/// Trustworthiness of an observation: stated by the caller, or from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactOrigin {
    /// The caller stated it without a source.
    Stated,
    /// The caller named a source.
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

/// An observation to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub text: String,
    pub origin: FactOrigin,
    pub source: Option<String>,
}

/// An entity to create or to extend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntity {
    pub name: String,
    /// Without one an existing entity keeps its type.
    pub kind: Option<String>,
    pub facts: Vec<Fact>,
}

/// How names are matched with existing entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameMatch {
    /// Exact match.
    Exact,
    /// Exact match, or else the only entity that differs just in case and whitespace.
    Alike,
}

/// Result of an upsert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpsertResult {
    /// The stored name.
    pub name: String,
    pub created: bool,
    /// Number of new observations.
    pub added: u64,
    /// The previous type, if it changed.
    pub kind_was: Option<String>,
}

/// A typed relation from one entity to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Link {
    pub source: String,
    pub relation: String,
    pub target: String,
}

/// Result of adding relations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkResult {
    pub added: u64,
    /// Already existed.
    pub skipped: u64,
    /// Entities that did not exist and were created.
    pub created: Vec<String>,
}

/// A query. All given conditions must match.
#[derive(Debug, Clone, Default)]
pub struct MemoryQuery {
    /// Words to search for, best matches first.
    pub text: Option<String>,
    pub name: Option<String>,
    pub kind: Option<String>,
    /// Include the relations of each entity.
    pub links: bool,
    /// State at that time instead of now.
    pub at: Option<Timestamp>,
    /// Without observations from other sources.
    pub stated_only: bool,
    pub limit: usize,
    /// Maximum observations per entity.
    pub facts: usize,
}

#[derive(Debug, Clone)]
pub struct QueryResult {
    pub entities: Vec<KnownEntity>,
    pub total: u64,
    /// False if `total` counts only what was examined.
    pub exact: bool,
    /// Similar names, if the requested name does not exist.
    pub nearest: Vec<String>,
}

/// An empty, exact result.
impl Default for QueryResult {
    fn default() -> Self {
        Self { entities: Vec::new(), total: 0, exact: true, nearest: Vec::new() }
    }
}

/// An entity with its observations and relations.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownEntity {
    pub name: String,
    pub kind: String,
    /// Oldest first.
    pub facts: Vec<KnownFact>,
    /// Total number, of which some may be omitted.
    pub fact_count: u64,
    pub links: Vec<EntityRelation>,
    pub links_left_out: bool,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// Relevance for the words of the query.
    pub score: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFact {
    pub text: String,
    pub origin: FactOrigin,
    pub source: Option<String>,
    pub since: Timestamp,
    /// The call that added it.
    pub call: String,
}

/// An observation that is no longer true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedFact {
    /// Name of its entity, which may have ended, too.
    pub entity: String,
    pub fact: KnownFact,
    pub until: Timestamp,
}

/// A relation as seen from one of its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityRelation {
    pub relation: String,
    pub other: String,
    pub outward: bool,
}

/// A page of the list of all entities, by name.
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
    /// Types with the number of their entities, most frequent first.
    pub kinds: Vec<(String, u64)>,
}

#[derive(Debug, Clone)]
pub struct EntitySummary {
    pub name: String,
    pub kind: String,
    pub fact_count: u64,
    pub updated: Timestamp,
}

/// How something is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is no longer true but was: queries about the past still find it.
    Ended,
    /// No trace is left, neither in the past nor in the index.
    Erased,
}

/// What to remove.
#[derive(Debug, Clone)]
pub enum ForgetTarget {
    Fact { entity: String, text: String },
    Link(Link),
}

/// A part of everything, in the order of creation.
#[derive(Debug, Clone, Default)]
pub struct Dump {
    /// With all observations, and the relations that start here.
    pub entities: Vec<KnownEntity>,
    /// Where to continue.
    pub next: Option<i64>,
}

/// Store of memories. A change is acknowledged once it is durable and can be found.
pub trait MemoryStore: Send + Sync {
    fn upsert(
        &self,
        asker: MemoryCaller,
        entities: Vec<NewEntity>,
        names: NameMatch,
    ) -> BoxFuture<'_, StoreResult<Vec<UpsertResult>>>;
    /// Creates entities that do not exist.
    fn link(
        &self,
        asker: MemoryCaller,
        links: Vec<Link>,
        names: NameMatch,
    ) -> BoxFuture<'_, StoreResult<LinkResult>>;
    fn query(&self, asker: MemoryCaller, question: MemoryQuery) -> BoxFuture<'_, StoreResult<QueryResult>>;
    /// The ended observations of the entities with this name, also of deleted ones; the last that ended first.
    fn history(
        &self,
        asker: MemoryCaller,
        name: String,
        limit: usize,
    ) -> BoxFuture<'_, StoreResult<Vec<EndedFact>>>;
    fn list(&self, asker: MemoryCaller, page: PageRequest) -> BoxFuture<'_, StoreResult<EntityPage>>;
    /// Removes entities with their observations and relations; returns the names of those that existed.
    fn delete(
        &self,
        asker: MemoryCaller,
        names: Vec<String>,
        removal: Removal,
    ) -> BoxFuture<'_, StoreResult<Vec<String>>>;
    /// Returns the number of removed items; zero if nothing matches.
    fn forget(
        &self,
        asker: MemoryCaller,
        what: ForgetTarget,
        removal: Removal,
    ) -> BoxFuture<'_, StoreResult<u64>>;
    fn dump(&self, asker: MemoryCaller, after: i64, limit: usize) -> BoxFuture<'_, StoreResult<Dump>>;
}

/// Handle to the memory.
pub type Memory = Arc<dyn MemoryStore>;
