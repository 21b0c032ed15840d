//! Admission of calls to a server.

pub(crate) mod active_calls;
pub(crate) mod breaker;
pub(crate) mod fair_queue;
