//! The records of a copy. The order of rows that a backend numbers is the order of the records.

use crate::apis::StoredApi;
use crate::{Anchor, PendingLogin, Port, StoredCredential};
use octo_model::Principal;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
pub enum TransferRecord {
    /// The last fencing token that was issued. No later one may be less.
    LeaseToken(u64),
    ChainStart(ChainStart),
    ChainRecord(ChainRecord),
    /// The end of the chain.
    ChainEnd(Anchor),
    /// Its bytes follow.
    Result(ResultRow),
    ResultChunk(Vec<u8>),
    PinServer(PinServerRow),
    Pin(PinRow),
    SeenPin(SeenPinRow),
    Listing(ListingRow),
    Api(ApiRow),
    Run(RunRow),
    Step(StepRow),
    Credential(StoredCredential),
    PendingLogin(PendingLogin),
    /// Of the last change of credentials.
    CredentialRevision(u64),
    /// The rows of the memory follow, and refer to it.
    MemoryOwner(MemoryOwnerRow),
    Kind(KindRow),
    Entity(EntityRow),
    FormerKind(FormerKindRow),
    Fact(FactRow),
    Link(LinkRow),
}

/// The beginning of a chain of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainStart {
    /// Empty for the chain of the hub that copies, whatever its name.
    pub chain: String,
    /// The last record that was pruned.
    pub pruned: Option<Anchor>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainRecord {
    pub seq: i64,
    pub hash: Vec<u8>,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRow {
    pub handle: String,
    pub owner: Principal,
    pub call: String,
    /// Bytes that follow.
    pub size: u64,
    /// Microseconds since 1970, here and below.
    pub created: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinServerRow {
    pub server: String,
    pub identity: String,
    pub revision: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinRow {
    pub server: String,
    pub kind: String,
    pub key: String,
    pub hash: String,
    pub text: String,
}

/// A definition that is remembered without being pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenPinRow {
    pub pin: PinRow,
    pub since: i64,
    pub is_pending: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingRow {
    pub server: String,
    pub mark: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiRow {
    pub owner: Principal,
    pub api: StoredApi,
    pub document: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    pub id: String,
    pub owner: Principal,
    pub path: String,
    pub name: String,
    pub text: String,
    pub hash: String,
    pub params: String,
    pub status: String,
    pub outputs: Option<String>,
    pub error: Option<String>,
    pub begun: i64,
    pub changed: i64,
    pub fence: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRow {
    pub tenant: String,
    pub run: String,
    pub key: String,
    pub status: String,
    pub output: Option<String>,
    pub error: Option<String>,
    pub attempts: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryOwnerRow {
    pub owner: Principal,
    /// Size for the quota.
    pub bytes: i64,
}

/// A type and the number of its entities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindRow {
    pub kind: String,
    pub live: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityRow {
    /// Unique within the memory.
    pub id: i64,
    pub name: String,
    pub kind: String,
    /// Number of current observations.
    pub facts: i64,
    /// Row of its last observation, or its own.
    pub last_row: i64,
    pub updated: i64,
    pub since: i64,
    pub until: i64,
}

/// A type that an entity had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerKindRow {
    pub entity: i64,
    pub kind: String,
    pub until: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactRow {
    /// Contains the id of the entity.
    pub row: i64,
    pub text: String,
    pub origin: i64,
    pub source: Option<String>,
    pub call: String,
    pub since: i64,
    pub until: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRow {
    pub source: i64,
    pub relation: String,
    pub target: i64,
    pub call: String,
    pub since: i64,
    pub until: i64,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateKind {
    AuditRecords,
    Results,
    Pins,
    Listings,
    Apis,
    Runs,
    Credentials,
    PendingLogins,
    Entities,
    Observations,
    Relations,
}

impl StateKind {
    pub const ALL: [Self; 11] = [
        Self::AuditRecords,
        Self::Results,
        Self::Pins,
        Self::Listings,
        Self::Apis,
        Self::Runs,
        Self::Credentials,
        Self::PendingLogins,
        Self::Entities,
        Self::Observations,
        Self::Relations,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AuditRecords => "audit_records",
            Self::Results => "results",
            Self::Pins => "pins",
            Self::Listings => "listings",
            Self::Apis => "apis",
            Self::Runs => "runs",
            Self::Credentials => "credentials",
            Self::PendingLogins => "pending_logins",
            Self::Entities => "entities",
            Self::Observations => "observations",
            Self::Relations => "relations",
        }
    }
}

impl TransferRecord {
    /// The store that it belongs to.
    pub const fn port(&self) -> Port {
        match self {
            Self::LeaseToken(_) => Port::Leases,
            Self::ChainStart(_) | Self::ChainRecord(_) | Self::ChainEnd(_) => Port::AuditReader,
            Self::Result(_) | Self::ResultChunk(_) => Port::Results,
            Self::PinServer(_) | Self::Pin(_) | Self::SeenPin(_) => Port::Pins,
            Self::Listing(_) => Port::Listings,
            Self::Api(_) => Port::Apis,
            Self::Run(_) | Self::Step(_) => Port::Runs,
            Self::Credential(_) | Self::PendingLogin(_) | Self::CredentialRevision(_) => Port::Credentials,
            Self::MemoryOwner(_)
            | Self::Kind(_)
            | Self::Entity(_)
            | Self::FormerKind(_)
            | Self::Fact(_)
            | Self::Link(_) => Port::Memory,
        }
    }

    const fn state_kind(&self) -> Option<StateKind> {
        Some(match self {
            Self::ChainRecord(_) => StateKind::AuditRecords,
            Self::Result(_) => StateKind::Results,
            Self::Pin(_) => StateKind::Pins,
            Self::Listing(_) => StateKind::Listings,
            Self::Api(_) => StateKind::Apis,
            Self::Run(_) => StateKind::Runs,
            Self::Credential(_) => StateKind::Credentials,
            Self::PendingLogin(_) => StateKind::PendingLogins,
            Self::Entity(_) => StateKind::Entities,
            Self::Fact(_) => StateKind::Observations,
            Self::Link(_) => StateKind::Relations,
            _ => return None,
        })
    }

    /// Approximate bytes, for the size of a batch.
    pub fn size(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Self::ChainRecord(record) => record.bytes.len(),
            Self::ResultChunk(bytes) => bytes.len(),
            Self::Pin(pin) => pin.text.len(),
            Self::SeenPin(seen) => seen.pin.text.len(),
            Self::Listing(listing) => listing.text.len(),
            Self::Api(api) => api.document.len() + api.api.settings.len(),
            Self::Run(run) => run.text.len() + run.params.len() + optional(&run.outputs),
            Self::Step(step) => step.attempts.len() + optional(&step.output) + optional(&step.error),
            Self::Fact(fact) => fact.text.len(),
            _ => 0,
        }
    }
}

/// How many records of each kind were copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransferCounts(BTreeMap<StateKind, u64>);

impl TransferCounts {
    pub fn add(&mut self, record: &TransferRecord) {
        if let Some(kind) = record.state_kind() {
            *self.0.entry(kind).or_default() += 1;
        }
    }

    pub fn get(&self, kind: StateKind) -> u64 {
        self.0.get(&kind).copied().unwrap_or_default()
    }
}
