//! The stages of a call.

pub(crate) mod approval;
pub(crate) mod audit_record;
pub(crate) mod call_metrics;
pub(crate) mod call_request;
pub(crate) mod call_rules;
pub(crate) mod coerce;
pub(crate) mod compiled_schema;
pub(crate) mod error_limits;
pub(crate) mod policy;
pub(crate) mod rate_limit;
pub(crate) mod redact;
pub(crate) mod response_cache;
pub(crate) mod telemetry;
pub(crate) mod upstream_telemetry;
pub(crate) mod validate;
