//! Subscriptions to resources.

pub(crate) mod subscription_counts;
