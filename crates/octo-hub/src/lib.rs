//! The hub: one catalogue, one call path, the same for every face and every target.

mod absent;
mod audit;
mod bound;
mod response_cache;
mod call;
mod catalogue;
mod check;
mod compiled_schema;
mod coerce;
mod cut;
pub mod declared;
mod hub;
mod item;
pub mod jq;
mod listing;
mod nearest;
mod results_source;
mod pictures;
mod playbook;
mod policy;
mod ports;
mod profile;
pub mod prompts;
mod rate_limit;
mod readable;
mod tool_override;
mod result_read;
mod rules;
mod shape;
mod subscribe;
mod telemetry;
pub mod trust;
mod uri;
mod view;
mod watches;

pub use response_cache::CacheRule;
pub use call::{CallOutcome, Request};
pub use catalogue::Change;
pub use hub::{Hub, HubConfig};
pub use item::{Entry, Item, ListKind, Mirrored};
pub use listing::Page;
pub use nearest::nearest;
pub use playbook::{Problem, read as read_yaml};
pub use policy::{Decision, Policy, PolicySettings, Rule};
pub use ports::{
    ArgumentKey, CallEnded, KeptRun, KeptStep, AuditLog, NewRun, PinDelta, PinWrite, CallStarted, Outcome, Pending, Pin,
    PinSet, Pins, RunLease, RunStatus, Runs, ResultStore, TakenRun, ItemKind, ServerIdentity,
};
pub use profile::{Profile, ProfileSettings};
pub use rate_limit::LimitRule;
pub use readable::{KeptText, ReadSeek, TextSize, write_readable};
pub use tool_override::{Argument, Others, OverrideSettings, Translated};
pub use rules::RuleSettings;
pub use shape::ResultLimits;
pub use subscribe::{MAX_SUBSCRIBED_URI_BYTES, MAX_SUBSCRIPTIONS};
pub use telemetry::{Excerpts, Tracer};
pub use view::View;
pub use watches::Subscription;
