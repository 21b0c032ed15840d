//! The only doors to the operating system. A tool can touch nothing that it was not handed.

#![expect(clippy::disallowed_methods, reason = "this crate is the door that the lint sends everybody to")]

mod child;
mod clock;
mod doors;
pub mod exec;
pub mod fs;
mod keep;
mod net;
mod random;
mod ssh;

pub use child::{Child, Command, Group};
pub use clock::Clock;
pub use doors::{Doors, Grant};
pub use exec::{Exec, Sessions};
pub use fs::{Fs, Place, WorkPath, Workspace};
pub use keep::{Keep, Keeps};
pub use net::{Connector, connector};
pub use ssh::SshKey;
