//! Ports: the store interfaces of the hub, its sources and its tools, with the stored records. A backend
//! implements the traits; `in_memory` is the one without dependencies.

pub mod apis;
mod argument_key;
mod audit_chain;
pub mod audit_format;
mod audit_log;
mod audit_reader;
mod changes;
pub mod conformance;
pub mod credentials;
mod error;
mod health_check;
pub mod in_memory;
pub mod leases;
pub mod listings;
pub mod memory;
pub mod pins;
pub mod random_id;
pub mod result_quota;
mod result_store;
pub mod runs;
mod seal;
pub mod sessions;
mod stores;
pub mod transfer;

pub use apis::{ApiStore, Apis};
pub use argument_key::ArgumentKey;
pub use audit_chain::{Anchor, ChainAnchor, Hash};
pub use audit_log::audit_record::{AuditRecord, RecordKind};
pub use audit_log::retention_clock;
pub use audit_log::{AuditBacklog, AuditLog, CallEnded, CallStarted, Outcome};
pub use audit_reader::{AuditCursor, AuditReader, Retention, Verified};
pub use changes::{ChangeNotifier, Changes};
pub use credentials::{CredentialStore, Credentials, Owner, PendingLogin, Slot, StoredCredential};
pub use error::{Limit, Port, StoreError, StoreResult};
pub use health_check::{ConnectionUse, HealthCheck, HealthProblem};
pub use leases::fleet_records::FleetRecords;
pub use leases::{Lease, Leases, rate_buckets};
pub use listings::{ListingStore, Listings};
pub use memory::{Memory, MemoryStore};
pub use pins::{PendingPin, Pin, PinDelta, PinKind, PinSet, PinWrite, Pins, ServerIdentity};
pub use rate_buckets::{RateBucket, RateBuckets, ReturnedSlice, Slice};
pub use result_store::{
    OWN_TEXT_META_KEY, ReadSeek, ResultStore, ResultWriter, StoredText, TextSize, write_text,
};
pub use runs::{LeasedRun, NewRun, RunLease, RunStatus, Runs, StoredRun, StoredStep};
pub use seal::{KEY_LEN, Keyring, Seal, SecretError};
pub use sessions::{SessionStore, Sessions};
pub use stores::Stores;
