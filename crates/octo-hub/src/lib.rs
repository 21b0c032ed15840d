//! The hub: one catalogue, one call path, the same for every face and every target.

mod absent;
mod audit;
mod bound;
mod cache;
mod call;
mod catalogue;
mod check;
mod checker;
mod coerce;
mod cut;
pub mod declared;
mod hub;
mod item;
pub mod jq;
mod listing;
mod nearest;
mod own;
mod pictures;
mod playbook;
mod policy;
mod ports;
mod profile;
pub mod prompts;
mod quota;
mod readable;
mod recast;
mod result_read;
mod rules;
mod shape;
mod subscribe;
mod telemetry;
pub mod trust;
mod uri;
mod view;
mod watches;

pub use cache::CacheRule;
pub use call::{Called, Request};
pub use catalogue::Change;
pub use hub::{Hub, Parts};
pub use item::{Entry, Item, ListKind, Mirrored};
pub use listing::Page;
pub use nearest::nearest;
pub use playbook::{Problem, read as read_yaml};
pub use policy::{Decision, Policy, PolicySettings, Rule};
pub use ports::{
    ArgumentKey, Closing, KeptRun, KeptStep, Ledger, NewRun, News, Noted, Opening, Outcome, Pending, Pin,
    Pinned, Pins, RunPen, RunStatus, Runs, Spills, TakenRun, What, Whose,
};
pub use profile::{Profile, ProfileSettings};
pub use quota::LimitRule;
pub use readable::{KeptText, ReadSeek, TextSize, write_readable};
pub use recast::{Argument, Others, RecastSettings, Translated};
pub use rules::RuleSettings;
pub use shape::ShapeSettings;
pub use subscribe::{MAX_SUBSCRIBED_URI_BYTES, MAX_SUBSCRIPTIONS};
pub use telemetry::{Excerpts, Tracer};
pub use view::View;
pub use watches::Subscription;
