//! Which calls may go to a server now.

pub(crate) mod active_calls;
pub(crate) mod breaker;
pub(crate) mod fair_queue;
