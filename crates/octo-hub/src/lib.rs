//! The hub: one catalogue, one call path, the same for every face and every target.

mod absent_servers;
mod audit_record;
mod error_limits;
mod response_cache;
mod call_pipeline;
mod catalogue;
mod validate;
mod compiled_schema;
mod coerce;
mod truncate;
pub mod declared;
mod hub;
mod item;
pub mod jq_eval;
mod list_pages;
mod suggest;
mod results_source;
mod image_size;
mod yaml_files;
mod policy;
mod ports;
mod profile;
pub mod prompt_files;
mod rate_limit;
mod reply_text;
mod tool_override;
mod result_read;
mod call_rules;
mod result_limit;
mod subscribe;
mod telemetry;
pub mod trust;
mod uri_spellings;
mod profile_view;
mod subscription_counts;

pub use response_cache::CacheRule;
pub use call_pipeline::{CallOutcome, Request};
pub use catalogue::Change;
pub use hub::{Hub, HubConfig};
pub use item::{Entry, Item, ListKind, HeaderParam};
pub use list_pages::Page;
pub use suggest::nearest;
pub use yaml_files::{Problem, parse_yaml as read_yaml};
pub use policy::{Decision, Policy, PolicySettings, Rule};
pub use ports::{
    ArgumentKey, CallEnded, StoredRun, StoredStep, AuditLog, NewRun, PinDelta, PinWrite, CallStarted, Outcome, PendingPin, Pin,
    PinSet, Pins, RunLease, RunStatus, Runs, ResultStore, LeasedRun, ItemKind, ServerIdentity,
};
pub use profile::{Profile, ProfileSettings};
pub use rate_limit::LimitRule;
pub use reply_text::{StoredText, ReadSeek, TextSize, write_text};
pub use tool_override::{Argument, UnmappedParams, OverrideSettings, ParamTranslation};
pub use call_rules::RuleSettings;
pub use result_limit::ResultLimits;
pub use subscribe::{MAX_SUBSCRIBED_URI_BYTES, MAX_SUBSCRIPTIONS};
pub use telemetry::{Excerpts, Tracer};
pub use profile_view::View;
pub use subscription_counts::Subscription;
