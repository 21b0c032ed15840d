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
pub mod config_dirs;
pub mod fs;
pub mod jq;
mod result_store;
pub mod listing_cache;
pub mod llm;
pub mod memory;
pub mod net;
mod core_dumps;
pub mod pdf;
mod socket_owner;
mod random;
mod page_renderer;
mod search_path;
pub mod sql;
mod ssh;

pub use apis::Apis;
pub use child::{Child, Command, ChildHandle};
pub use chromium::Chromium;
pub use clock::Clock;
pub use connector::Connector;
pub use credentials::{Credentials, Secret};
pub use capabilities::{Capabilities, Grant};
pub use exec::{Exec, Sessions};
pub use fs::{Fs, RootedPath, WorkPath, Workspace};
pub use jq::JqRunner;
pub use result_store::{Keep, Keeps};
pub use listing_cache::ListingCache;
pub use llm::Llm;
pub use memory::Memory;
pub use net::Net;
pub use core_dumps::disable_core_dumps;
pub use pdf::Pdf;
pub use socket_owner::socket_owner;
pub use page_renderer::{Render, RenderedPage, PageRenderer};
pub use search_path::SearchPath;
pub use sql::Sql;
pub use ssh::SshKey;
