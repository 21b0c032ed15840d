//! All that a tool's author imports, and the one trait that everything callable implements.

mod bench;
mod cx;
mod example;
mod peer;
mod schema;
mod source;
mod tool;
mod toolbox;

pub use bench::Bench;
pub use cx::Cx;
pub use example::Example;
pub use octo_grants::{Clock, Doors, Exec, Fs, Grant, Keep, Place, SshKey, WorkPath, Workspace, exec, fs};
pub use octo_model::{Effect, Json, Kind, Members, ToolError};
pub use peer::{Alone, Ask, Peer};
pub use schema::schema_of;
pub use source::{Definition, Event, Listing, Lists, Source, State};
pub use tool::Tool;
pub use toolbox::{Native, Toolbox};

/// A future that can be kept in a box: the shape of every asynchronous method behind `dyn`.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
