//! The servers behind the hub, spoken to as an MCP client of both eras: child processes and streamable HTTP.
//! Only the envelope of a message is typed; what it carries passes as it came.

mod ask_login;
mod backoff;
mod board;
mod breaker;
mod call;
mod calls;
mod child;
mod connection;
mod fail;
mod handshake;
mod health;
mod heard;
mod http;
mod idle;
mod inbox;
mod kind;
mod known;
mod listen;
mod listers;
mod listing;
pub mod login;
mod lost;
mod meta;
mod mirror;
pub mod openapi;
mod pool;
mod question;
mod reach;
mod read;
mod relogin;
mod report;
mod rest;
pub mod servers;
mod spec;
mod state;
mod supervisor;
mod task;
mod turns;
mod upstream;
mod watched;
mod wire;

pub use ask_login::AskLogin;
pub use report::{About, Condition, Report};
pub use spec::{Cage, Connect, Limits, Link, Share, Spec, Trip};
pub use upstream::Upstream;
