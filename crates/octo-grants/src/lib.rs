//! The only doors to the operating system. A tool can touch nothing that it was not handed.

#![expect(clippy::disallowed_methods, reason = "this crate is the door that the lint sends everybody to")]

mod child;
mod clock;
mod doors;
mod net;

pub use child::{Child, Command, Group};
pub use clock::Clock;
pub use doors::{Doors, Grant};
pub use net::{Connector, connector};
