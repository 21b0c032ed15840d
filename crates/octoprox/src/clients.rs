//! The clients that people have already: where they keep their MCP servers, how they write them, and how octoprox is put
//! among them.

mod entry;
pub mod jsonc;
mod list;
mod name;
mod place;
mod references;
mod register;
mod secrets;

pub use list::{Entry, listed};
pub use place::{Client, Place, Reading, places};
pub use references::needed;
pub use register::{Registration, register};
pub use secrets::{Vault, guessed};
