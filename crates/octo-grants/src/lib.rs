//! Capabilities: the only access to the operating system. A tool can use only what it was granted.

#![expect(
    clippy::disallowed_methods,
    reason = "this crate wraps the methods that the lint forbids elsewhere"
)]

mod capabilities;
mod child;
pub mod chromium;
mod clock;
pub mod config_dirs;
mod connector;
mod core_dumps;
mod descriptor_limit;
pub mod exec;
pub mod fs;
pub mod jq;
pub mod llm;
pub mod net;
mod page_renderer;
pub mod pdf;
mod random;
mod search_path;
mod socket_owner;
pub mod sql;
mod ssh;
pub mod tls;

pub use capabilities::{Capabilities, Grant};
pub use child::{Child, ChildHandle, Command, NEUTRAL_DIR};
pub use chromium::Chromium;
pub use clock::Clock;
pub use connector::Connector;
pub use core_dumps::disable_core_dumps;
pub use descriptor_limit::{descriptor_limit, highest_descriptor_limit, raise_descriptor_limit};
pub use exec::{Exec, Sessions};
pub use fs::{Fs, RootedPath, WorkPath, Workspace};
pub use jq::JqRunner;
pub use llm::Llm;
pub use net::Net;
pub use page_renderer::{PageRenderer, Render, RenderedPage};
pub use pdf::Pdf;
pub use search_path::SearchPath;
pub use socket_owner::socket_owner;
pub use sql::Sql;
pub use ssh::SshKey;
