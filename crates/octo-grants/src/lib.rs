//! The only doors to the operating system. A tool can touch nothing that it was not handed.

#![expect(clippy::disallowed_methods, reason = "this crate is the door that the lint sends everybody to")]

pub mod apis;
mod child;
pub mod chromium;
mod clock;
mod connector;
pub mod credentials;
mod capabilities;
pub mod exec;
pub mod folders;
pub mod fs;
pub mod jq;
mod keep;
pub mod lists;
pub mod llm;
pub mod memory;
pub mod net;
mod no_core;
pub mod pdf;
mod peer;
mod random;
mod render;
mod search_path;
pub mod sql;
mod ssh;

pub use apis::Apis;
pub use child::{Child, Command, Group};
pub use chromium::Chromium;
pub use clock::Clock;
pub use connector::Connector;
pub use credentials::{Credentials, Secret};
pub use capabilities::{Capabilities, Grant};
pub use exec::{Exec, Sessions};
pub use fs::{Fs, RootedPath, WorkPath, Workspace};
pub use jq::JqRunner;
pub use keep::{Keep, Keeps};
pub use lists::LastLists;
pub use llm::Llm;
pub use memory::Memory;
pub use net::Net;
pub use no_core::no_core;
pub use pdf::Pdf;
pub use peer::socket_owner;
pub use render::{Render, Rendered, Renders};
pub use search_path::SearchPath;
pub use sql::Sql;
pub use ssh::SshKey;
