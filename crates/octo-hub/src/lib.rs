//! The hub: one catalogue and one call path for every frontend and every source.

mod apps;
mod catalogue;
mod code;
pub mod declared;
mod find;
mod hub;
mod pipeline;
pub mod prompt_files;
mod results;
pub mod skills;
mod subscriptions;
pub mod trust;
mod watched_files;
mod yaml_files;

pub use apps::app_content::app_pins;
pub use apps::app_tool::supports_apps;
pub use catalogue::Change;
pub use catalogue::client_features::ClientFeatures;
pub use catalogue::header_params::HeaderParam;
pub use catalogue::item::{Entry, Item};
pub use catalogue::list_epoch::{ClientEpoch, ListChanges};
pub use catalogue::profile::{Profile, ProfileSettings};
pub use catalogue::profile_view::View;
pub use catalogue::rendered_list::remove_text_only_mark;
pub use catalogue::surface::{ListOptions, Structure, Surface, SurfaceSettings};
pub use catalogue::surface_choice::{SurfaceChoice, SurfaceReason, estimate_tokens, model_bytes};
pub use catalogue::tool_override::{Argument, OverrideSettings, ParamTranslation, UnmappedParams};
pub use code::run_code::RUN_CODE_TOOL;
pub use find::tools_call::CALL_TOOL;
pub use find::tools_find::FIND_TOOL;
pub use find::vector_cache::VectorStore;
pub use hub::call_pipeline::CallOutcome;
pub use hub::list_pages::{ListRequest, Page};
pub use hub::subscribe::{MAX_SUBSCRIBED_URI_BYTES, MAX_SUBSCRIPTIONS};
pub use hub::{Hub, HubConfig};
pub use octo_code::ChildCommand;
pub use pipeline::approval::{ApprovalRequest, Approver};
pub use pipeline::call_request::Request;
pub use pipeline::call_rules::RuleSettings;
pub use pipeline::policy::{
    Action, Decision, Denial, Obligations, PolicyDecision, PolicyEngine, PolicyRequest, PolicyRules,
    PolicySettings, QuestionRequest, Rule,
};
pub use pipeline::rate_limit::LimitRule;
pub use pipeline::response_cache::CacheRule;
pub use pipeline::telemetry::{Excerpts, Tracer};
pub use results::jq_eval;
pub use results::repeated_structure::shows_structure;
pub use results::result_failure::{ResultFailure, block_text};
pub use results::result_limit::ResultLimits;
pub use results::result_read::RESULT_READ_TOOL;
pub use subscriptions::subscription_counts::Subscription;
pub use yaml_files::{Problem, parse_yaml as read_yaml};
