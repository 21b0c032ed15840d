//! Subscriptions to resources.

pub(crate) mod subscribe;
pub(crate) mod subscription_counts;
