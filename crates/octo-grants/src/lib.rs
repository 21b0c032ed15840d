//! The only doors to the operating system. A tool can touch nothing that it was not handed.

#![expect(clippy::disallowed_methods, reason = "this crate is the door that the lint sends everybody to")]

pub mod apis;
mod capabilities;
mod child;
pub mod chromium;
mod clock;
pub mod config_dirs;
mod connector;
mod core_dumps;
pub mod credentials;
pub mod exec;
pub mod fs;
pub mod jq;
pub mod listing_cache;
pub mod llm;
pub mod memory;
pub mod net;
mod page_renderer;
pub mod pdf;
mod random;
mod result_store;
mod search_path;
mod socket_owner;
pub mod sql;
mod ssh;

pub use apis::Apis;
pub use capabilities::{Capabilities, Grant};
pub use child::{Child, ChildHandle, Command};
pub use chromium::Chromium;
pub use clock::Clock;
pub use connector::Connector;
pub use core_dumps::disable_core_dumps;
pub use credentials::{Credentials, Secret};
pub use exec::{Exec, Sessions};
pub use fs::{Fs, RootedPath, WorkPath, Workspace};
pub use jq::JqRunner;
pub use listing_cache::ListingCache;
pub use llm::Llm;
pub use memory::Memory;
pub use net::Net;
pub use page_renderer::{PageRenderer, Render, RenderedPage};
pub use pdf::Pdf;
pub use result_store::{Keep, Keeps};
pub use search_path::SearchPath;
pub use socket_owner::socket_owner;
pub use sql::Sql;
pub use ssh::SshKey;
