//! Servers behind streamable HTTP, of both eras.

mod answer;
mod back;
mod client;
mod endpoint;
mod events;
mod exchange;
mod headers;
mod moved;
mod pause;

pub(crate) use back::follow as follow_back_channel;
pub(crate) use client::{Client, client};
pub(crate) use endpoint::Endpoint;
pub(crate) use headers::value as header_value;
