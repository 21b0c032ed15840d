//! The hub: one catalogue, one call path, the same for every face and every target.

mod absent_servers;
mod approval;
mod audit_record;
mod call_pipeline;
mod call_rules;
mod catalogue;
mod coerce;
mod compiled_schema;
pub mod declared;
mod error_limits;
mod hub;
mod image_size;
mod item;
pub mod jq_eval;
mod list_pages;
mod policy;
mod ports;
mod profile;
mod profile_view;
pub mod prompt_files;
mod rate_limit;
mod redact;
mod reply_text;
mod response_cache;
mod result_limit;
mod result_read;
mod results_source;
mod subscribe;
mod subscription_counts;
mod suggest;
mod telemetry;
mod tool_override;
mod truncate;
pub mod trust;
mod uri_spellings;
mod validate;
mod yaml_files;

pub use approval::{ApprovalRequest, Approver};
pub use call_pipeline::{CallOutcome, Request};
pub use call_rules::RuleSettings;
pub use catalogue::Change;
pub use hub::{Hub, HubConfig};
pub use item::{Entry, HeaderParam, Item, ListKind};
pub use list_pages::Page;
pub use policy::{
    Action, Decision, Obligations, Policy, PolicyDecision, PolicyEngine, PolicyRequest, PolicySettings, Rule,
};
pub use ports::{
    ArgumentKey, AuditLog, CallEnded, CallStarted, ItemKind, LeasedRun, NewRun, Outcome, PendingPin, Pin,
    PinDelta, PinSet, PinWrite, Pins, ResultStore, RunLease, RunStatus, Runs, ServerIdentity, StoredRun,
    StoredStep,
};
pub use profile::{Profile, ProfileSettings};
pub use profile_view::View;
pub use rate_limit::LimitRule;
pub use reply_text::{ReadSeek, StoredText, TextSize, write_text};
pub use response_cache::CacheRule;
pub use result_limit::ResultLimits;
pub use subscribe::{MAX_SUBSCRIBED_URI_BYTES, MAX_SUBSCRIPTIONS};
pub use subscription_counts::Subscription;
pub use suggest::nearest;
pub use telemetry::{Excerpts, Tracer};
pub use tool_override::{Argument, OverrideSettings, ParamTranslation, UnmappedParams};
pub use yaml_files::{Problem, parse_yaml as read_yaml};
