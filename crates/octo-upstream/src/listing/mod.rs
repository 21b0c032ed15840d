//! Listing of a server, and how it is kept up to date.

pub(crate) mod change_streams;
pub(crate) mod list_changes;
mod listed_items;
mod listing_codec;
pub(crate) mod listing_election;
pub(crate) mod listing_publisher;
pub(crate) mod listing_refresh;
pub(crate) mod resource_subscriptions;
